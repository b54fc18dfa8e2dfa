import { createContextKey, type HandlerContext } from '@connectrpc/connect';
import type { Call } from '../api/method.ts';
import type { Transfer } from '../api/transfer.ts';
import { parseBearer } from '../domain/header-rules.ts';

/** Connect's names of the protocols, as calls have them. */
const PROTOCOLS = { connect: 'connect', grpc: 'grpc', 'grpc-web': 'grpc-web' } as const;

/** One call: the parts that come from its connection, and the call as handlers see it. */
export interface RpcExchange {
  readonly transfer: Transfer;
  call?: Call;
  /** Called once, with the call. */
  readonly onCall?: (call: Call) => void;
}

/** Where the mount puts the exchange of a call, for {@link toCall}. */
export const exchangeKey = createContextKey<RpcExchange | undefined>(undefined, {
  description: 'the call and its connection',
});

/** The call as handlers see it. Throws when the mount has not set its exchange. */
export function toCall(context: HandlerContext): Call {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error('a call came without its connection');
  if (exchange.call === undefined) {
    exchange.call = newCall(context, exchange.transfer);
    exchange.onCall?.(exchange.call);
  }
  return exchange.call;
}

function newCall(context: HandlerContext, transfer: Transfer): Call {
  return new RpcCall(context, transfer);
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
    this.protocol = PROTOCOLS[protocolName as keyof typeof PROTOCOLS];
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
