import { type DescMessage, getOption } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { BadRequestSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { query_inline } from '../../gen/queuedcrawler/v1/options_pb.ts';

/**
 * Names fields of `query_inline` messages with their path, such as `parameters.format`. REST binds them as if
 * they were fields of the request, and handlers name them so.
 */
export function nameInlinedFields(error: unknown, input: DescMessage): unknown {
  const details = (error as Partial<ConnectError>).details ?? [];
  for (const detail of details) {
    if (!('desc' in detail) || detail.desc.typeName !== BadRequestSchema.typeName) continue;
    const { fieldViolations = [] } = detail.value as { fieldViolations?: { field: string }[] };
    for (const violation of fieldViolations) violation.field = pathOf(violation.field, input);
  }
  return error;
}

function pathOf(field: string, { fields }: DescMessage): string {
  const has = (message: DescMessage): boolean => message.fields.some(({ name }) => name === field);
  if (fields.some(({ name }) => name === field)) return field;
  for (const each of fields) {
    if (getOption(each, query_inline) && each.message !== undefined && has(each.message))
      return `${each.name}.${field}`;
  }
  return field;
}
