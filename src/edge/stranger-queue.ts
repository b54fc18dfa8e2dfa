import { constants, type Http2Session } from 'node:http2';
import { addressPrefix } from '../domain/address-prefix.ts';
import { type AnyRequest, type AnyResponse, isGone } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { refuseCall } from './refuse-call.ts';

/** Limits of calls that wait because their callers are unknown. */
export interface StrangerBounds {
  readonly maxStrangers: number;
  /** From one address. */
  readonly maxStrangersPerAddress: number;
}

/** Gives the calls of known callers precedence over those of strangers. */
export interface StrangerQueue {
  /**
   * Calls `handle` at once for a known caller, and for a stranger while no other waits. Otherwise
   * strangers wait, by address in turn. Refuses a call beyond the bounds.
   */
  admit(request: AnyRequest, response: AnyResponse, handle: () => void): void;
}

/** The collaborators of the queue. */
export interface StrangerQueueDeps {
  readonly bounds: StrangerBounds;
  /** Whether the request has a token that this process knows. */
  readonly isKnown: (request: AnyRequest) => boolean;
  /** Called with the address of each refused call. */
  readonly onRefused: (remote: string) => void;
}

/**
 * Calls of strangers that start in one iteration of the event loop. One takes up to a millisecond
 * of it, which is what a request of a known caller waits for.
 */
const STARTS_PER_ITERATION = 2;

/** Refused streams after which an HTTP/2 connection without any known caller is closed. */
const MAX_REFUSED_STREAMS = 3;

interface WaitingCall {
  readonly response: AnyResponse;
  readonly handle: () => void;
}

/** Makes the queue, empty. */
export function createStrangerQueue(deps: StrangerQueueDeps): StrangerQueue {
  const { bounds, isKnown, onRefused } = deps;
  /** By address prefix, in the order of turns. */
  const waiting = new Map<string, WaitingCall[]>();
  const refusedOn = new WeakMap<Http2Session, number>();
  /** Connections that have carried a call of a known caller. */
  const knownSessions = new WeakSet<Http2Session>();
  let size = 0;
  let started = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(runTurn);
  }

  function runTurn(): void {
    isScheduled = false;
    started = 0;
    while (started < STARTS_PER_ITERATION) {
      const next = takeNext();
      if (next === undefined) return;
      if (isGone(next.response)) continue;
      started += 1;
      next.handle();
    }
    schedule();
  }

  function takeNext(): WaitingCall | undefined {
    const [entry] = waiting;
    if (entry === undefined) return undefined;
    const [address, calls] = entry;
    const call = calls.shift();
    size -= 1;
    waiting.delete(address);
    if (calls.length > 0) waiting.set(address, calls);
    return call;
  }

  function refuse(response: AnyResponse, remote: string): void {
    onRefused(remote);
    const session = 'stream' in response ? response.stream?.session : undefined;
    refuseCall(response);
    if (session === undefined || knownSessions.has(session)) return;
    const refused = (refusedOn.get(session) ?? 0) + 1;
    refusedOn.set(session, refused);
    // Each further stream would cost its objects before it can be refused.
    if (refused > MAX_REFUSED_STREAMS)
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  return {
    admit(request, response, handle) {
      if (isKnown(request)) {
        const session = 'stream' in response ? response.stream?.session : undefined;
        if (session !== undefined) knownSessions.add(session);
        return handle();
      }
      if (size === 0 && started < STARTS_PER_ITERATION) {
        started += 1;
        schedule();
        return handle();
      }
      const { remote } = requestNote(request);
      const address = addressPrefix(remote);
      const calls = waiting.get(address) ?? [];
      if (size >= bounds.maxStrangers || calls.length >= bounds.maxStrangersPerAddress) {
        return refuse(response, remote);
      }
      calls.push({ response, handle });
      waiting.set(address, calls);
      size += 1;
      schedule();
    },
  };
}
