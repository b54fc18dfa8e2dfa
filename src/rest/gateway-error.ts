import type { DescMessage } from '@bufbuild/protobuf';
import { NAMED_CHARACTERS, unknownMemberText } from '../api/message-options.ts';
import { lastName } from '../domain/field-name.ts';

/** Optional parts of a {@link GatewayError}. */
export interface GatewayErrorOptions {
  /** The parameter or field that is wrong. */
  readonly field?: string;
  /** Further members of the error body, such as the allowed values. */
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A request that the gateway refuses before any handler runs. `message` is for the client, `reason`
 * for programs.
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: number;
  readonly reason: string;
  readonly field: string | undefined;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, reason: string, message: string, options: GatewayErrorOptions = {}) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.field = options.field;
    this.facts = options.facts ?? {};
    this.headers = options.headers ?? {};
  }
}

/**
 * A 422 error for a value that does not fit its field. `path` names the parameter or field as the
 * client wrote it, for example `items[3].url`. The reason is made of its last name, so that it is
 * the same for every index.
 */
export function badValue(
  path: string,
  expected: string,
  facts: Readonly<Record<string, unknown>> = {},
): GatewayError {
  const leaf = lastName(path);
  return new GatewayError(422, `invalid_${leaf}`, `${path} must be ${expected}.`, {
    field: path,
    facts,
  });
}

/** A 422 error for a member that the object at `path` does not have; `known` are those that it has. */
export function unknownMember(
  path: string,
  name: string,
  known: readonly string[],
  desc?: DescMessage,
): GatewayError {
  const message = unknownMemberText(path, name, known, desc);
  return new GatewayError(422, 'unknown_member', message, {
    field: path === '' ? name.slice(0, NAMED_CHARACTERS) : path,
  });
}
