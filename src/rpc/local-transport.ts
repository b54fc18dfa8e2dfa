import { createContextValues, type Transport } from '@connectrpc/connect';
import {
  createUniversalHandlerClient,
  type UniversalHandler,
  type UniversalServerRequest,
} from '@connectrpc/connect/protocol';
import { createTransport } from '@connectrpc/connect/protocol-connect';
import { exchangeKey, type RpcExchange } from './rpc-exchange.ts';

/**
 * A transport that calls the handlers of this process, with every check that a call from outside
 * passes. `newExchange` is called for each call.
 */
export function createLocalTransport(
  handlers: readonly UniversalHandler[],
  token: string,
  newExchange: () => RpcExchange,
): Transport {
  const local = handlers.map((handler): UniversalHandler => {
    const call = (request: UniversalServerRequest) => {
      request.header.set('authorization', `Bearer ${token}`);
      const contextValues = createContextValues().set(exchangeKey, newExchange());
      return handler({ ...request, contextValues });
    };
    return Object.assign(call, handler);
  });
  return createTransport({
    httpClient: createUniversalHandlerClient(local),
    baseUrl: 'http://localhost',
    useBinaryFormat: true,
    interceptors: [],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: Number.MAX_SAFE_INTEGER,
    readMaxBytes: Number.MAX_SAFE_INTEGER,
    writeMaxBytes: Number.MAX_SAFE_INTEGER,
  });
}
