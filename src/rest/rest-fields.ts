import {
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type Message,
} from '@bufbuild/protobuf';
import { number_is_true, rest_field } from '../../gen/queuedcrawler/v1/options_pb.ts';

/** A message as a map of its fields by local name. */
export type Fields = Message & Record<string, unknown>;

/** The only well-known type that has a REST form. */
export const TIMESTAMP = 'google.protobuf.Timestamp';

/** The name of a field in REST requests and replies: its `rest_field`, else its proto name. */
export function restName(field: DescField): string {
  return hasOption(field, rest_field) ? getOption(field, rest_field) : field.name;
}

/** Whether this flag accepts a positive whole number as true. */
export function isNumberTrue(field: DescField): boolean {
  return getOption(field, number_is_true);
}

/**
 * The fields of a message: REST carries all of them. Throws at start for fields without a JSON form
 * here: members of a oneof, and well-known types other than Timestamp.
 */
export function restFields(desc: DescMessage): readonly DescField[] {
  if (desc.typeName.startsWith('google.protobuf.')) {
    throw new Error(`${desc.typeName} has no REST form`);
  }
  const grouped = desc.fields.find((field) => field.oneof !== undefined);
  if (grouped !== undefined) {
    throw new Error(`${desc.typeName}.${grouped.name}: a oneof has no REST form`);
  }
  return desc.fields;
}

/**
 * Finds a field by its proto name, for rules. Throws at start when the message has no such field.
 */
export function fieldNamed(desc: DescMessage, name: string, where: string): DescField {
  const field = desc.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`${where}: ${desc.typeName} has no field "${name}"`);
  return field;
}
