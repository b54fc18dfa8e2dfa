import type { Message } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { nameInlinedFields } from '../api/inlined-fields.ts';
import type { Call, Method, UnaryMethod } from '../api/method.ts';
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
      const work = handled(method, noted(request, context), toCall(context));
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

async function handled(method: UnaryMethod, request: Message, call: Call): Promise<object> {
  try {
    return await method.handle(request, call);
  } catch (error) {
    throw nameInlinedFields(error, method.desc.input);
  }
}

async function* notedEach(requests: AsyncIterable<Message>, context: HandlerContext) {
  for await (const request of requests) yield noted(request, context);
}
