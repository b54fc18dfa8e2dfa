import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb.ts';

/** Why a call failed, in the words of the service. */
export interface CallFailure {
  /** For example `not_found`; one of gRPC's codes in lower case. */
  readonly code: string;
  /** For a person. */
  readonly message: string;
  /** Stable word for programs; docs/errors.md lists them. Absent when the service did not answer. */
  readonly reason?: string;
  /** The field at fault, when it is one. */
  readonly field?: string;
  /** When trying again may help, in milliseconds; absent when it does not. */
  readonly retryAfterMs?: number;
}

/** Reads what a call has thrown. */
export function describeFailure(error: unknown): CallFailure {
  const wire = ConnectError.from(error);
  if (isCertificateError(wire.cause)) {
    const why = wire.rawMessage;
    const message = `The certificate of the service is not accepted (${why}). \`ca\` names its authority.`;
    return { code: wordOf(Code.Unavailable), message };
  }
  const reason = wire.findDetails(ErrorInfoSchema)[0]?.reason;
  const field = wire.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field;
  const delay = wire.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return {
    code: wordOf(wire.code),
    message: wire.rawMessage,
    ...(reason === undefined ? {} : { reason }),
    ...(field === undefined ? {} : { field }),
    ...(delay === undefined
      ? {}
      : { retryAfterMs: Number(delay.seconds) * 1_000 + Math.ceil(delay.nanos / 1_000_000) }),
  };
}

/** Whether Node or OpenSSL refused the certificate of the other side, by the codes of their errors. */
function isCertificateError(cause: unknown): boolean {
  return /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/.test(codeOf(cause));
}

/** The code of an error of Node, such as `ECONNREFUSED`; empty for anything else. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function wordOf(code: Code): string {
  return (Code[code] ?? 'Unknown').replace(/\B[A-Z]/g, '_$&').toLowerCase();
}
