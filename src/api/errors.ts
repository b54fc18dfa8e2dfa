import { create, type Message } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../gen/google/rpc/error_details_pb.ts';
import { DomainError, type ErrorKind } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import { type Call, type Method, methodName } from './method.ts';

/** `domain` of every google.rpc.ErrorInfo. */
const ERROR_DOMAIN = 'queuedcrawler';

const codes: Readonly<Record<ErrorKind, Code>> = {
  invalid: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  forbidden: Code.PermissionDenied,
  not_found: Code.NotFound,
  conflict: Code.AlreadyExists,
  failed_precondition: Code.FailedPrecondition,
  exhausted: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
  internal: Code.Internal,
};

/** Retry delay of `unavailable` errors that specify none. */
const DEFAULT_RETRY_MS = 1_000;

/** The text of every unknown error. */
const INTERNAL_TEXT = 'An internal error occurred.';

/** The part of a call that errors concern. */
export type FailedCall = Pick<Call, 'signal' | 'requestId' | 'failure'>;

/** Where an error occurred. */
export interface ErrorPlace {
  /** The method or path pattern, for the log; never the URL. */
  readonly route: string;
  /**
   * The call: an error after its signal was aborted is a cancellation, not a fault. Its `failure` is
   * set, and the error names its request.
   */
  readonly call?: FailedCall | undefined;
}

/**
 * Converts an error to the one that is sent, with its google.rpc details. Anything that is neither
 * a DomainError nor a ConnectError is logged, and sent as `internal` with a fixed text.
 */
export function toConnectError(error: unknown, logger: Logger, place: ErrorPlace): ConnectError {
  const wire = toWireError(error, logger, place);
  if (place.call !== undefined) identify(wire, place.call);
  return wire;
}

/** Notes the failure of the call, and names its request in the error. */
function identify(wire: ConnectError, call: FailedCall): void {
  const [info] = wire.findDetails(ErrorInfoSchema);
  call.failure ??= info?.reason ?? codeName(wire.code);
  const { requestId } = call;
  if (requestId === undefined || wire.findDetails(RequestInfoSchema).length > 0) return;
  wire.details.push({ desc: RequestInfoSchema, value: { requestId } });
}

/** A code as errors of REST and the log name it, such as `deadline_exceeded`. */
export function codeName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, '_$&').toLowerCase();
}

function toWireError(error: unknown, logger: Logger, place: ErrorPlace): ConnectError {
  if (error instanceof ConnectError) return error;
  if (error instanceof DomainError) {
    if (error.kind === 'internal') log(error, logger, place);
    return fromDomain(error);
  }
  const signal = place.call?.signal;
  if (signal?.aborted === true && isAbort(error, signal)) {
    const { reason } = signal;
    return reason instanceof ConnectError
      ? reason
      : new ConnectError('The call was cancelled.', Code.Canceled);
  }
  log(error, logger, place);
  return detailed(new ConnectError(INTERNAL_TEXT, Code.Internal), 'internal', {});
}

/**
 * Wraps methods so that they throw only ConnectError. Every table is wrapped once, before it is
 * mounted.
 */
export function withConnectErrors(methods: readonly Method[], logger: Logger): Method[] {
  return methods.map((method): Method => {
    const route = methodName(method.desc);
    const convert = (error: unknown, call: Call) => toConnectError(error, logger, { route, call });
    if (method.kind === 'unary') {
      return {
        ...method,
        async handle(request: Message, call: Call) {
          try {
            return await method.handle(request, call);
          } catch (error) {
            throw convert(error, call);
          }
        },
      };
    }
    // The two streaming kinds differ only in their request, which is passed on unchanged.
    const handle = method.handle as StreamHandle;
    return { ...method, handle: guardedStream(handle, convert) } as Method;
  });
}

type StreamHandle = (request: never, call: Call) => AsyncIterable<object>;

function guardedStream(
  handle: StreamHandle,
  convert: (error: unknown, call: Call) => ConnectError,
): StreamHandle {
  return async function* guarded(request, call) {
    try {
      yield* handle(request, call);
    } catch (error) {
      throw convert(error, call);
    }
  };
}

function fromDomain(error: DomainError): ConnectError {
  const wire = new ConnectError(error.message, codes[error.kind], undefined, undefined, error);
  detailed(wire, error.reason, error.metadata ?? {});
  if (error.field !== undefined) {
    const violation = { field: error.field, description: error.message, reason: error.reason };
    wire.details.push({ desc: BadRequestSchema, value: { fieldViolations: [violation] } });
  }
  if (error.resource !== undefined) {
    const { type: resourceType, name: resourceName } = error.resource;
    wire.details.push({ desc: ResourceInfoSchema, value: { resourceType, resourceName } });
  }
  const retryAfterMs =
    error.retryAfterMs ?? (error.kind === 'unavailable' ? DEFAULT_RETRY_MS : undefined);
  if (retryAfterMs !== undefined) {
    const retryDelay = durationFromMs(Math.max(retryAfterMs, 1));
    wire.details.push({ desc: RetryInfoSchema, value: { retryDelay } });
  }
  return wire;
}

function detailed(
  wire: ConnectError,
  reason: string,
  metadata: Readonly<Record<string, string | number>>,
): ConnectError {
  const texts = Object.entries(metadata).map(([name, value]) => [name, String(value)]);
  const value = create(ErrorInfoSchema, {
    reason,
    domain: ERROR_DOMAIN,
    metadata: Object.fromEntries(texts) as Record<string, string>,
  });
  wire.details.push({ desc: ErrorInfoSchema, value });
  return wire;
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === 'AbortError');
}

function log(error: unknown, logger: Logger, place: ErrorPlace): void {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const cause =
    error instanceof Error && error.cause instanceof Error ? error.cause.stack : undefined;
  const { requestId } = place.call ?? {};
  logger.error({ route: place.route, requestId, stack, cause }, 'a call failed unexpectedly');
}
