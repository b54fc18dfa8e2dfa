import {
  type DescMessage,
  getOption,
  hasOption,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';
import { rest_name } from '../../../../gen/queuedcrawler/v1/options_pb.ts';
import type { FileRow } from '../../ui/row-file.ts';

/** A message as a row of a file, by the names of the API; enumerations by their words of REST. */
export function fileRow<Desc extends DescMessage>(
  desc: Desc,
  message: MessageShape<Desc>,
): FileRow {
  const json = toJson(desc, message, { useProtoFieldName: true }) as Record<string, unknown>;
  for (const field of desc.fields) {
    if (field.fieldKind !== 'enum' || !(field.name in json)) continue;
    const value = field.enum.values.find(({ name }) => name === json[field.name]);
    if (value !== undefined && hasOption(value, rest_name)) {
      json[field.name] = getOption(value, rest_name);
    }
  }
  return json;
}
