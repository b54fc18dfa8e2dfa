import { Code, ConnectError } from '@connectrpc/connect';
import { BadRequestSchema, ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';

/** Why a call failed, for a person. */
export interface Fault {
  readonly code: Code;
  /** The service's stable word; empty when the call did not reach it. */
  readonly reason: string;
  /** The field at fault, in the protocol's spelling; empty when no field is. */
  readonly field: string;
  readonly text: string;
  /** What to do about it; empty when the text says it. */
  readonly advice: string;
  /** Whether the same call may succeed later. */
  readonly isTransient: boolean;
}

/** Describes any error of a call. */
export function faultOf(error: unknown): Fault {
  const wire = ConnectError.from(error);
  const unwritable = NOT_WRITTEN.exec(wire.rawMessage);
  if (unwritable !== null) {
    const [, field = '', value = ''] = unwritable;
    const text = `${field} cannot be ${value}.`;
    const code = Code.InvalidArgument;
    return { code, reason: 'invalid_value', field, text, advice: '', isTransient: false };
  }
  const [info] = wire.findDetails(ErrorInfoSchema);
  const [request] = wire.findDetails(BadRequestSchema);
  // Without the service's own details the error is the browser's, or that of something between.
  const unreached = isOfCall(error) && info === undefined && UNREACHED.has(wire.code);
  return {
    code: wire.code,
    reason: info?.reason ?? '',
    field: request?.fieldViolations[0]?.field ?? '',
    text: unreached ? 'The service does not answer.' : wire.rawMessage,
    advice: unreached
      ? 'Check that it runs and that this computer reaches it.'
      : (ADVICE[wire.code] ?? ''),
    isTransient: unreached || [Code.Unavailable, Code.ResourceExhausted].includes(wire.code),
  };
}

const UNREACHED: ReadonlySet<Code> = new Set([Code.Unknown, Code.Unavailable]);

/** Whether a call has failed, or the network; other errors are the page's own. */
const isOfCall = (error: unknown): boolean =>
  error instanceof ConnectError || error instanceof TypeError;

/** What the client says of a value that its field cannot have; such a call is not sent. */
const NOT_WRITTEN = /^serialize \w+: cannot encode field [\w.]*\.(\w+) to \w+: invalid \w+: (.*)$/s;

const ADVICE: Partial<Record<Code, string>> = {
  [Code.Unauthenticated]: 'The token is wrong, or was replaced.',
  [Code.PermissionDenied]: 'Sign in with the other token of the account as well.',
  [Code.ResourceExhausted]: 'Wait a moment, then try again.',
  [Code.Unavailable]: 'Wait a moment, then try again.',
  [Code.Internal]: 'The log of the service has the details.',
  [Code.Unimplemented]: 'This version of the service does not offer it.',
};
