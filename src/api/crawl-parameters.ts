import type { MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { getOption } from '@bufbuild/protobuf';
import {
  type CrawlParameters,
  CrawlParametersSchema,
} from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { rest_name } from '../../gen/queuedcrawler/v1/options_pb.ts';

const fields = CrawlParametersSchema.fields.map((field) => ({
  localName: field.localName as keyof MessageShape<typeof CrawlParametersSchema>,
  name: field.name,
  words:
    field.fieldKind === 'enum'
      ? new Map(field.enum.values.map((value) => [value.number, getOption(value, rest_name)]))
      : undefined,
}));

/** Converts crawl parameters from the names and words of REST. */
export function toParametersMessage(
  parameters: Readonly<Record<string, unknown>>,
): MessageInitShape<typeof CrawlParametersSchema> {
  const message: Record<string, unknown> = {};
  for (const { localName, name, words } of fields) {
    const value = parameters[name];
    if (value === undefined) continue;
    message[localName] =
      words === undefined ? value : [...words].find(([, word]) => word === value)?.[0];
  }
  return message;
}

/** Converts crawl parameters to the names and words of REST; absent ones are left out. */
export function toParameters(message: CrawlParameters | undefined): Record<string, unknown> {
  const parameters: Record<string, unknown> = {};
  if (message === undefined) return parameters;
  for (const { localName, name, words } of fields) {
    const value = message[localName];
    if (value === undefined) continue;
    parameters[name] = words === undefined ? value : (words.get(value as number) ?? 'unknown');
  }
  return parameters;
}
