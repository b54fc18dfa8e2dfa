import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { enumNames } from '../../src/rest/enum-names.ts';
import { restName, TIMESTAMP } from '../../src/rest/rest-fields.ts';
import type { DescribedApi } from './descriptors.ts';

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** Who writes a message. In replies every field without presence is set; requests may omit it. */
export type Direction = 'request' | 'reply';

/** Makes schemas and collects those that are referred to. */
export interface Schemas {
  /** The schema of a field, with the comment of the field as description. */
  ofField(field: DescField, direction: Direction): Schema;
  /** The inline schema of a message, without the named fields. */
  ofMessage(desc: DescMessage, direction: Direction, without?: ReadonlySet<string>): Schema;
  /** A reference to the schema of a message. */
  refTo(desc: DescMessage, direction: Direction): Schema;
  /** `components.schemas`, by name. */
  collected(): Readonly<Record<string, Schema>>;
}

/** Makes an empty collection over an API. */
export function createSchemas(api: DescribedApi): Schemas {
  const found = new Map<string, Schema>();

  function ofMessage(
    desc: DescMessage,
    direction: Direction,
    without: ReadonlySet<string> = new Set(),
  ): Schema {
    const fields = desc.fields.filter((field) => !without.has(restName(field)));
    const required = fields
      .filter((field) => field.presence === FeatureSet_FieldPresence.IMPLICIT)
      .map(restName);
    return {
      type: 'object',
      ...described(api.comment(desc)),
      properties: Object.fromEntries(
        fields.map((field) => [restName(field), ofField(field, direction)]),
      ),
      ...(direction === 'reply' && required.length > 0 ? { required } : {}),
    };
  }

  function refTo(desc: DescMessage, direction: Direction): Schema {
    // A message that is used in both directions has two schemas, because a request may omit fields
    // that a reply always has.
    const name = direction === 'request' ? `${desc.name}Input` : desc.name;
    if (!found.has(name)) {
      found.set(name, {});
      found.set(name, ofMessage(desc, direction));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function ofField(field: DescField, direction: Direction): Schema {
    const description = described(api.comment(field));
    const single = ofSingle(field, direction);
    if (field.fieldKind === 'list') return { type: 'array', items: single, ...description };
    if (field.fieldKind === 'map') {
      return { type: 'object', additionalProperties: single, ...description };
    }
    return { ...single, ...description };
  }

  function ofSingle(field: DescField, direction: Direction): Schema {
    if (field.message !== undefined) {
      return field.message.typeName === TIMESTAMP
        ? { type: 'string', format: 'date-time' }
        : refTo(field.message, direction);
    }
    if (field.enum !== undefined) return ofEnum(field.enum, field, direction);
    return ofScalar(field.scalar);
  }

  function ofEnum(desc: DescEnum, field: DescField, direction: Direction): Schema {
    const names = enumNames(desc);
    const words = direction === 'reply' ? names.words : names.requestWords;
    const mayBeEmpty =
      direction === 'reply' && field.presence === FeatureSet_FieldPresence.IMPLICIT;
    return { type: 'string', enum: mayBeEmpty ? ['', ...words] : words };
  }

  return {
    ofField,
    ofMessage,
    refTo,
    collected: () => Object.fromEntries([...found].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** A `description`, unless the comment is empty. */
export function described(comment: string): Schema {
  return comment === '' ? {} : { description: comment };
}

function ofScalar(scalar: ScalarType | undefined): Schema {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: 'string' };
    case ScalarType.BYTES:
      return { type: 'string', contentEncoding: 'base64' };
    case ScalarType.BOOL:
      return { type: 'boolean' };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: 'number' };
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return { type: 'integer', format: 'int64' };
    default:
      return { type: 'integer', format: 'int32' };
  }
}
