import type { DescMethod } from '@bufbuild/protobuf';
import { isLenient } from '../api/message-options.ts';

/**
 * How the JSON of a method's requests is read. Members and names of enums that are not known are
 * refused: a misspelt condition of a filter would count as none, and select everything. The methods
 * that take URLs ignore them.
 */
export function jsonOptions({ input }: Pick<DescMethod, 'input'>) {
  const ignoreUnknownFields = input.fields.some(
    ({ message }) => message !== undefined && isLenient(message),
  );
  return { ignoreUnknownFields };
}
