import { ConnectError } from '@connectrpc/connect';
import type { ServerStreamMethod } from '../api/method.ts';
import { assertNotDrained, untilAborted } from '../api/until-aborted.ts';
import { compileRuleBinder, type Endpoint } from './endpoint.ts';
import { toErrorJson } from './error-reply.ts';
import type { HttpRule } from './http-rule.ts';
import { compileMessageWriter, type ValueWriter } from './write-json.ts';

/** The Content-Type of streams: a line of JSON for each message. */
const STREAM_TYPE = 'application/x-ndjson; charset=utf-8';

const HEADERS = {
  'content-type': STREAM_TYPE,
  'cache-control': 'no-store',
  // Proxies of the nginx kind would hold messages back until there are many.
  'x-accel-buffering': 'no',
};

/**
 * Compiles a rule of a method that answers with a stream. An error before the first message is a
 * reply like every other error; one after it is the last line. `draining` ends streams so.
 */
export function compileStreamEndpoint(
  rule: HttpRule,
  method: ServerStreamMethod,
  draining: AbortSignal,
): Endpoint {
  const bind = compileRuleBinder(rule);
  const write = compileMessageWriter(rule.desc.output);

  return async (exchange, segments) => {
    const request = await bind(exchange, segments);
    const { call } = exchange;
    const messages = untilAborted(method.handle(request, call), draining);
    // A reply that is never sent is never read, either: the stream ends with the connection.
    call.signal.addEventListener('abort', () => void messages.return(), { once: true });
    const first = await messages.next();
    const onEnd = (): void => assertNotDrained(draining, rule.desc);
    const body = toLines(first, messages, { write, onEnd });
    return { status: 200, headers: HEADERS, body };
  };
}

async function* toLines(
  first: IteratorResult<object, void>,
  rest: AsyncIterable<object>,
  deps: { readonly write: ValueWriter; readonly onEnd: () => void },
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (first.done !== true) {
      yield toLine(deps.write(first.value));
      for await (const message of rest) yield toLine(deps.write(message));
    }
    deps.onEnd();
  } catch (error) {
    // Methods throw nothing else; it has been logged where it had to be.
    if (!(error instanceof ConnectError)) throw error;
    yield toLine(toErrorJson(error));
  }
}

function toLine(json: string): Uint8Array {
  return Buffer.from(`${json}\n`);
}
