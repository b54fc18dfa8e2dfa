import type { Message } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { Method } from '../api/method.ts';
import { assertNotDrained, untilAborted } from '../api/until-aborted.ts';
import { raceAbort } from '../domain/race-abort.ts';
import { noted, toCall } from './rpc-exchange.ts';

/**
 * The function that Connect calls for a method. A stream ends with UNAVAILABLE when `draining` is
 * aborted; a unary call rejects at its deadline.
 */
export function toImplementation(method: Method, draining: AbortSignal) {
  if (method.kind === 'unary') {
    return (request: Message, context: HandlerContext) => {
      const work = method.handle(noted(request, context), toCall(context));
      return context.timeoutMs() === undefined ? work : raceAbort(work, context.signal);
    };
  }
  if (method.kind === 'server_streaming') {
    return async function* serve(request: Message, context: HandlerContext) {
      yield* untilAborted(method.handle(noted(request, context), toCall(context)), draining);
      assertNotDrained(draining, method.desc);
    };
  }
  return async function* serve(requests: AsyncIterable<Message>, context: HandlerContext) {
    const all = notedEach(untilAborted(requests, draining), context);
    yield* method.handle(all, toCall(context));
    assertNotDrained(draining, method.desc);
  };
}

async function* notedEach(requests: AsyncIterable<Message>, context: HandlerContext) {
  for await (const request of requests) yield noted(request, context);
}
