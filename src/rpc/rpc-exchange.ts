import type { Message } from '@bufbuild/protobuf';
import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import type { Call } from '../api/method.ts';
import type { Transfer } from '../api/transfer.ts';
import { noteUnreadable } from '../api/unreadable.ts';
import { parseBearer } from '../domain/header-rules.ts';
import type { RefusedElement } from './check-json.ts';

/** One call: the parts that come from its connection, and the call as handlers see it. */
export interface RpcExchange {
  readonly transfer: Transfer;
  call?: Call;
  /** For each JSON message that no handler has yet, the elements that are refused by themselves. */
  readonly refused: (readonly RefusedElement[])[];
  /** Called once, with the call. */
  readonly onCall?: (call: Call) => void;
}

/** Where the mount puts the exchange of a call, for {@link toCall}. */
export const exchangeKey = createContextKey<RpcExchange | undefined>(undefined, {
  description: 'the call and its connection',
});

/** The exchange of a call. Throws when the mount has not set it. */
function exchangeOf(context: HandlerContext): RpcExchange {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error('a call came without its connection');
  return exchange;
}

/** The next message of a call, with the refusals of its elements noted. */
export function noted<Request extends Message>(request: Request, context: HandlerContext): Request {
  for (const { list, at, refusal } of exchangeOf(context).refused.shift() ?? []) {
    const elements = (request as unknown as Record<string, Message[]>)[list];
    const element = elements?.[at];
    if (element !== undefined) noteUnreadable(element, refusal);
  }
  return request;
}

/** The call as handlers see it. Throws when the mount has not set its exchange. */
export function toCall(context: HandlerContext): Call {
  const exchange = exchangeOf(context);
  if (exchange.call === undefined) {
    exchange.call = new RpcCall(context, exchange.transfer);
    exchange.onCall?.(exchange.call);
  }
  return exchange.call;
}

class RpcCall implements Call {
  readonly bearer: string | undefined;
  readonly signal: AbortSignal;
  readonly protocol: Call['protocol'];
  readonly remote: string;
  declare readonly requestId?: string;
  declare readonly traceparent?: string;
  readonly #transfer: Transfer;

  constructor({ requestHeader, signal, protocolName }: HandlerContext, transfer: Transfer) {
    this.bearer = parseBearer(requestHeader.get('authorization') ?? undefined);
    this.signal = signal;
    this.protocol = protocolName as Call['protocol'];
    this.remote = transfer.remote;
    this.#transfer = transfer;
    const requestId = requestHeader.get('x-request-id');
    if (requestId !== null) this.requestId = requestId;
    const traceparent = requestHeader.get('traceparent');
    if (traceparent !== null) this.traceparent = traceparent;
  }

  get room(): Call['room'] {
    return this.#transfer.room;
  }

  get received(): Call['received'] {
    return this.#transfer.received;
  }
}
