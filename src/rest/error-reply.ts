import { Code, type ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb.ts';
import { codeName } from '../api/errors.ts';
import { defined } from '../domain/defined.ts';
import type { GatewayError } from './gateway-error.ts';
import { toHttpStatus } from './http-status.ts';
import { jsonReply, type Reply } from './reply.ts';

/** The reply to a request the gateway refused. */
export function toRefusalReply(refusal: GatewayError, requestId: string | undefined): Reply {
  const { message: error, reason: code, field } = refusal;
  const body = { error, code, ...defined({ field }), ...refusal.facts, ...named(requestId) };
  return jsonReply(JSON.stringify(body), refusal.status, refusal.headers);
}

/**
 * The reply to a failed call: `{"error", "code", "field"?, ...metadata, "request_id"}` from the error's
 * google.rpc details, and `retry-after` in whole seconds where there is a retry delay.
 */
export function toErrorReply(error: ConnectError): Reply {
  return jsonReply(toErrorJson(error), toHttpStatus(error.code), errorHeaders(error));
}

/** The body of {@link toErrorReply}. */
export function toErrorJson(error: ConnectError): string {
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const field = badRequest?.fieldViolations[0]?.field;
  const body: Record<string, unknown> = {
    error: error.rawMessage,
    code: info?.reason ?? codeName(error.code),
  };
  if (field !== undefined) body['field'] = field;
  for (const [name, value] of Object.entries(info?.metadata ?? {})) {
    // gRPC metadata is text; JSON clients read limits as numbers.
    if (!(name in body)) body[name] = /^\d{1,15}$/.test(value) ? Number(value) : value;
  }
  const [request] = error.findDetails(RequestInfoSchema);
  Object.assign(body, named(request?.requestId));
  return JSON.stringify(body);
}

function errorHeaders(error: ConnectError): Record<string, string> {
  if (error.code === Code.Unauthenticated) return { 'www-authenticate': 'Bearer' };
  const isRetryable = error.code === Code.ResourceExhausted || error.code === Code.Unavailable;
  if (!isRetryable) return {};
  const [retry] = error.findDetails(RetryInfoSchema);
  const { seconds = 0n, nanos = 0 } = retry?.retryDelay ?? {};
  const delay = Math.ceil(Number(seconds) + nanos / 1e9);
  return { 'retry-after': String(Math.max(delay, 1)) };
}

/** The id of the request, as error bodies have it. */
function named(requestId: string | undefined): { request_id?: string } {
  return requestId === undefined ? {} : { request_id: requestId };
}
