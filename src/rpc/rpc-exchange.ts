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
  const authorization = context.requestHeader.get('authorization') ?? undefined;
  const requestId = context.requestHeader.get('x-request-id');
  const traceparent = context.requestHeader.get('traceparent');
  return {
    bearer: parseBearer(authorization),
    signal: context.signal,
    protocol: PROTOCOLS[context.protocolName as keyof typeof PROTOCOLS],
    remote: transfer.remote,
    get room() {
      return transfer.room;
    },
    get sent() {
      return transfer.sent;
    },
    ...(requestId === null ? {} : { requestId }),
    ...(traceparent === null ? {} : { traceparent }),
  };
}
