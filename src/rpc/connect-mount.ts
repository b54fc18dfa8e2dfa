import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { DescMethod, Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Logger } from '../domain/logger.ts';
import { type Call, type Method, methodName } from './method.ts';
import type { AnyRequest, AnyResponse } from './node-http.ts';
import { orAborted, untilAborted } from './stream-end.ts';

/** What the mount works with. */
export interface ConnectMountDeps {
  /** The table, with normalised errors. */
  readonly methods: readonly Method[];
  /** Longest message read, in bytes, unpacked. */
  readonly readMaxBytes: number;
  /** Longest message written, in bytes. */
  readonly writeMaxBytes: number;
  readonly logger: Logger;
}

/** The table over Connect, gRPC and gRPC-Web, on either HTTP version. */
export interface ConnectMount {
  /** Whether a path, without its query, is a method's. */
  handles(path: string): boolean;
  /** Answers a request whose path {@link ConnectMount.handles} takes. Never throws. */
  handle(request: AnyRequest, response: AnyResponse): void;
  /** Ends streams: what was received is answered, then the client is told UNAVAILABLE. Other calls go on. */
  drain(): void;
}

const protocols = { connect: 'connect', grpc: 'grpc', 'grpc-web': 'grpc-web' } as const;

/** Mounts the table. */
export function createConnectMount(deps: ConnectMountDeps): ConnectMount {
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes: deps.readMaxBytes,
    writeMaxBytes: deps.writeMaxBytes,
  });
  for (const method of deps.methods) mount(router, method, draining.signal);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  async function answer(request: AnyRequest, response: AnyResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const handler = handlers.get(path);
    if (handler === undefined) throw new Error('not a path of the table');
    if (/^application\/grpc(?!-web)/.test(request.headers['content-type'] ?? '')) {
      writePlainMessages(response);
    }
    const reply = await handler(
      universalRequestFromNodeRequest(request, response, undefined, undefined),
    );
    await universalResponseToNodeResponse(reply, response);
  }

  return {
    handles: (path) => handlers.has(path),
    handle(request, response) {
      answer(request, response).catch((error: unknown) => {
        // Handlers' errors are replies by now: this is a client that went away, or sent no authority.
        const { code, rawMessage } = ConnectError.from(error);
        deps.logger.debug({ code: Code[code], reason: rawMessage }, 'an RPC reply was not sent');
        response.destroy();
      });
    },
    drain: () => draining.abort(),
  };
}

function mount(router: ConnectRouter, method: Method, draining: AbortSignal): void {
  const implementation = implementationOf(method, draining);
  router.rpc(method.desc, implementation as MethodImpl<DescMethod>);
}

function implementationOf(method: Method, draining: AbortSignal) {
  if (method.kind === 'unary') {
    return (request: Message, context: HandlerContext) => {
      const work = method.handle(request, callFrom(context));
      return context.timeoutMs() === undefined ? work : orAborted(work, context.signal);
    };
  }
  if (method.kind === 'server') {
    return async function* serve(request: Message, context: HandlerContext) {
      yield* untilAborted(method.handle(request, callFrom(context)), draining);
      assertNotDrained(draining, method.desc);
    };
  }
  return async function* serve(requests: AsyncIterable<Message>, context: HandlerContext) {
    yield* method.handle(untilAborted(requests, draining), callFrom(context));
    assertNotDrained(draining, method.desc);
  };
}

function assertNotDrained(draining: AbortSignal, desc: DescMethod): void {
  if (!draining.aborted) return;
  throw new ConnectError(`${methodName(desc)}: the server is shutting down.`, Code.Unavailable);
}

function callFrom(context: HandlerContext): Call {
  const authorization = context.requestHeader.get('authorization') ?? '';
  const requestId = context.requestHeader.get('x-request-id');
  const timeoutMs = context.timeoutMs();
  return {
    bearer: /^bearer +(\S+) *$/i.exec(authorization)?.[1],
    signal: context.signal,
    responseHeaders: context.responseHeader,
    protocol: protocols[context.protocolName as keyof typeof protocols],
    ...(requestId === null ? {} : { requestId }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

/**
 * Keeps the grpc-message trailer to the encoding that gRPC asks for. Connect percent-encodes commas, colons and slashes as well,
 * which clients that decode with decodeURI (grpc-js) show to people as `%2C`.
 */
function writePlainMessages(response: AnyResponse): void {
  const http1 = response as ServerResponse;
  const addTrailers = http1.addTrailers.bind(http1);
  http1.addTrailers = (trailers) => {
    const { 'grpc-message': message, ...rest } = trailers as Record<string, string>;
    if (message === undefined) addTrailers(trailers);
    else addTrailers({ ...rest, 'grpc-message': plainlyEncoded(decodeURIComponent(message)) });
  };
}

function plainlyEncoded(text: string): string {
  return text.replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent);
}
