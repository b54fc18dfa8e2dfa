import { addCount } from '../domain/add-count.ts';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { refuseCall } from './refuse-call.ts';

/** Limits of RPC requests whose message has not arrived and whose caller is unknown. */
export interface HalfOpenBounds {
  readonly maxHalfOpen: number;
  /** From one address. */
  readonly maxHalfOpenPerAddress: number;
  /** How long such a request may wait for its first byte, in milliseconds. */
  readonly headersTimeoutMs: number;
}

/** Bounds what strangers hold by requests whose message never comes. */
export interface HalfOpenRequests {
  /**
   * Calls `handle` with the first byte of a request's message, so that a request that never comes
   * costs no handler. Refuses a request of an address that has too many of unknown callers. If there
   * are too many in all, the oldest of them is closed. A request that is whole is handled at once.
   */
  admit(request: AnyRequest, response: AnyResponse, handle: () => void): void;
}

/** Makes it without any request. */
export function createHalfOpenRequests(bounds: HalfOpenBounds): HalfOpenRequests {
  /** In the order in which they came. */
  const open = new Map<AnyRequest, AnyResponse>();
  const countOf = new Map<string, number>();

  function leave(request: AnyRequest): void {
    if (!open.delete(request)) return;
    addCount(countOf, requestNote(request).remote, -1);
  }

  /** Closes the oldest request of an unknown caller, and forgets the known ones before it. */
  function closeOldest(): void {
    for (const [request, response] of open) {
      leave(request);
      if (isKnown(request)) continue;
      refuseCall(response);
      return;
    }
  }

  /** Forgets the requests of an address whose callers are known by now. */
  function forgetKnown(remote: string): void {
    // A Map may lose entries while it is read.
    for (const request of open.keys()) {
      if (requestNote(request).remote === remote && isKnown(request)) leave(request);
    }
  }

  function isCrowded(remote: string): boolean {
    return (countOf.get(remote) ?? 0) >= bounds.maxHalfOpenPerAddress;
  }

  return {
    admit(request, response, handle) {
      if (isWhole(request)) return handle();
      const { remote } = requestNote(request);
      if (isCrowded(remote)) forgetKnown(remote);
      if (isCrowded(remote)) return refuseCall(response);
      if (open.size >= bounds.maxHalfOpen) closeOldest();
      open.set(request, response);
      addCount(countOf, remote, 1);
      for (const event of ['end', 'close'] as const) request.once(event, () => leave(request));
      response.once('close', () => leave(request));
      awaitFirstByte(request, response, bounds.headersTimeoutMs, handle);
    },
  };
}

/** Whether the request has no body, or all of it has arrived with its headers. */
function isWhole(request: AnyRequest): boolean {
  if ('stream' in request) return request.stream.endAfterHeaders;
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  return coding === undefined && length === '0';
}

function isKnown(request: AnyRequest): boolean {
  const { call } = requestNote(request);
  return call?.caller !== undefined || call?.isOperator === true;
}

function awaitFirstByte(
  request: AnyRequest,
  response: AnyResponse,
  timeoutMs: number,
  handle: () => void,
): void {
  const leave = (): void => {
    clearTimeout(timer);
    request.off('readable', onReadable);
    response.off('close', leave);
  };
  const onReadable = (): void => {
    leave();
    handle();
  };
  const timer = setTimeout(() => {
    leave();
    refuseCall(response);
  }, timeoutMs);
  timer.unref();
  request.on('readable', onReadable);
  response.on('close', leave);
}
