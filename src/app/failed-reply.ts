import { type FailedCall, toConnectError } from '../api/errors.ts';
import { defined } from '../domain/defined.ts';
import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { toErrorReply, toRefusalReply } from '../rest/error-reply.ts';
import { GatewayError } from '../rest/gateway-error.ts';
import type { Reply } from '../rest/reply.ts';

/**
 * The reply to a request that failed at a path outside the API, as the API replies. The line of the
 * request gets the code. Throws `error` when it is no refusal.
 */
export function failedReply(
  error: unknown,
  request: AnyRequest,
  { logger, route }: { readonly logger: Logger; readonly route: string },
): Reply {
  const requestId = String(request.headers['x-request-id']);
  const note = requestNote(request);
  if (error instanceof GatewayError) {
    note.call = { failure: error.reason };
    return toRefusalReply(error, requestId);
  }
  if (!(error instanceof DomainError)) throw error;
  const call: FailedCall = { signal: new AbortController().signal, requestId };
  const reply = toErrorReply(toConnectError(error, logger, { route, call }));
  note.call = defined({ failure: call.failure });
  return reply;
}
