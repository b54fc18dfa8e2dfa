import { type DescField, getOption, hasOption, isFieldSet, ScalarType } from '@bufbuild/protobuf';
import {
  type Crawler,
  CrawlerSchema,
  type CreateCrawlerRequest,
  CreateCrawlerRequestSchema,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { type SettingForm, setting_form } from '../../gen/queuedcrawler/v1/options_pb.ts';

/** Values of settings by their names; undefined for those that are not given. */
export type SettingValues = Readonly<Record<string, number | string | boolean | undefined>>;

/** A setting of a crawler, as people are asked for it. */
export interface SettingField {
  /** As refusals name it, such as `politeness.delay_ms`. */
  readonly name: string;
  readonly kind: 'number' | 'text' | 'flag';
  readonly form: SettingForm;
  /** The names in TypeScript: of the field, after that of the message that holds it, if one does. */
  readonly path: readonly [string] | readonly [string, string];
}

/** The settings of a request, under the names of the protocol. */
type SettingsInit = Partial<
  Omit<CreateCrawlerRequest, '$typeName' | '$unknown' | 'token' | 'name'>
>;

/** All settings that have a form, in the order of the proto. */
export const settingFields: readonly SettingField[] = CreateCrawlerRequestSchema.fields.flatMap(
  (field) => [
    ...settingField(field, field.name, [field.localName]),
    ...(field.message?.fields ?? []).flatMap((inner) =>
      settingField(inner, `${field.name}.${inner.name}`, [field.localName, inner.localName]),
    ),
  ],
);

function settingField(
  field: DescField,
  name: string,
  path: SettingField['path'],
): readonly SettingField[] {
  if (!hasOption(field, setting_form)) return [];
  return [{ name, kind: kindOf(field), form: getOption(field, setting_form), path }];
}

function kindOf({ name, scalar }: DescField): SettingField['kind'] {
  switch (scalar) {
    case ScalarType.INT32:
      return 'number';
    case ScalarType.STRING:
      return 'text';
    case ScalarType.BOOL:
      return 'flag';
    default:
      throw new Error(`no form for a setting such as ${name}`);
  }
}

/** The values of a crawler's settings; undefined where it has none. */
export function settingsOf(crawler: Crawler): SettingValues {
  return Object.fromEntries(
    settingFields.map(({ name, path }) => [name, valueAt(crawler, path)] as const),
  );
}

function valueAt(message: object, path: readonly string[]): number | string | boolean | undefined {
  const value = path.reduce<unknown>(
    (at, name) => (at as Record<string, unknown> | undefined)?.[name],
    message,
  );
  return value as number | string | boolean | undefined;
}

/**
 * The fields of a request that set `values`. A message in a request replaces the one that the crawler
 * has, so its other fields are taken from `before`.
 */
export function settingsRequest(values: SettingValues, before?: Crawler): SettingsInit {
  const request: Record<string, unknown> = {};
  for (const { name, path } of settingFields) {
    const value = values[name];
    if (value === undefined) continue;
    const [outer, inner] = path;
    if (inner === undefined) request[outer] = value;
    else request[outer] = { ...(request[outer] ?? fieldsOf(before, outer)), [inner]: value };
  }
  return request;
}

/** The fields of a message of the crawler that say something. */
function fieldsOf(crawler: Crawler | undefined, name: string): object {
  const message = (crawler as Record<string, unknown> | undefined)?.[name];
  if (message === undefined) return {};
  const fields = CrawlerSchema.fields.find(({ localName }) => localName === name)?.message?.fields;
  return Object.fromEntries(
    (fields ?? [])
      .filter((field) => isFieldSet(message as never, field))
      .map(({ localName }) => [localName, (message as Record<string, unknown>)[localName]]),
  );
}
