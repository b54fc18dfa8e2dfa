import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { DescMethod, Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Admission } from '../api/admission.ts';
import { toConnectError } from '../api/errors.ts';
import { type Call, type Method, methodName } from '../api/method.ts';
import { type MethodPolicy, methodPolicy } from '../api/policy.ts';
import { createTransfer, type Transfer } from '../api/transfer.ts';
import { untilAborted } from '../api/until-aborted.ts';
import { parseBearer } from '../domain/header-rules.ts';
import type { Logger } from '../domain/logger.ts';
import { raceAbort } from '../domain/race-abort.ts';
import { type AnyRequest, type AnyResponse, breakOff } from '../http/node-http.ts';
import { paced } from '../http/paced.ts';
import { createUnlimitedPools, type RoomPools } from '../http/room.ts';
import { acceptCompression, parseWireShape, readMessages, scanQueryMessage } from './intake.ts';

/** The collaborators of the mount. */
export interface ConnectMountDeps {
  /** The table; its methods throw only ConnectError. */
  readonly methods: readonly Method[];
  /**
   * Checks callers before anything is read. Without it nothing is checked, for tables whose methods
   * check tokens themselves.
   */
  readonly admission?: Admission;
  /** The memory that calls share. Default unlimited. */
  readonly pools?: RoomPools;
  /** Longest message read of any method, in bytes, unpacked. Default by the methods' policies. */
  readonly readMaxBytes?: number;
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
  /**
   * Ends streams: received messages are answered, then the client gets UNAVAILABLE. Other calls
   * continue.
   */
  drain(): void;
}

const protocols = { connect: 'connect', grpc: 'grpc', 'grpc-web': 'grpc-web' } as const;

/** One call: the parts that come from its connection, and the call as handlers see it. */
interface RpcExchange {
  readonly transfer: Transfer;
  call?: Call;
}

const exchangeKey = createContextKey<RpcExchange | undefined>(undefined, {
  description: 'the call and its connection',
});

/** Mounts the table. */
export function createConnectMount(deps: ConnectMountDeps): ConnectMount {
  const { admission, pools = createUnlimitedPools(), readMaxBytes, logger } = deps;
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const router = createConnectRouter({
    acceptCompression,
    writeMaxBytes: deps.writeMaxBytes,
  });
  const rows = new Map<string, { readonly method: Method; readonly policy: MethodPolicy }>();

  function mount(method: Method): void {
    const own = methodPolicy(method.desc);
    const policy =
      readMaxBytes === undefined ? own : { ...own, maxBytes: Math.min(readMaxBytes, own.maxBytes) };
    const route = methodName(method.desc);
    const implementation = toImplementation(method, draining.signal) as MethodImpl<DescMethod>;
    router.rpc(method.desc, implementation, {
      readMaxBytes: policy.maxBytes,
      async requestGate(context) {
        const call = toCall(context);
        try {
          // Otherwise the token may be in the message, which then has to be small, and is checked
          // after it has been read.
          if (call.bearer !== undefined) await admission?.admit(policy.access, '', call);
          if (context.requestMethod === 'GET') {
            await scanQueryMessage(context.url, method.desc.input, policy);
          }
        } catch (error) {
          throw toConnectError(error, logger, { route, signal: call.signal });
        }
      },
    });
    rows.set(`/${route}`, { method, policy });
  }
  for (const method of deps.methods) mount(method);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  async function answer(request: AnyRequest, response: AnyResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const handler = handlers.get(path);
    const row = rows.get(path);
    if (handler === undefined || row === undefined) throw new Error('not a path of the table');
    const contentType = request.headers['content-type'];
    if (/^application\/grpc(?!-web)/.test(contentType ?? '')) writePlainMessages(response);
    const exchange: RpcExchange = {
      transfer: createTransfer(request, response, pools, () => exchange.call?.caller),
    };
    const values = createContextValues().set(exchangeKey, exchange);
    const incoming = universalRequestFromNodeRequest(request, response, undefined, values);
    const shape = parseWireShape(contentType);
    const sent = { ...incoming, body: nothing() };
    if (shape !== undefined) {
      const encoding = request.headers['content-encoding'];
      if (!shape.isFramed && acceptCompression.some(({ name }) => name === encoding)) {
        // The body is decompressed before the handler gets it.
        sent.header.delete('content-encoding');
        sent.header.delete('content-length');
      }
      const options = {
        input: row.method.desc.input,
        policy: row.policy,
        isStream: row.method.kind === 'bidi_streaming',
        call: () => exchange.call as Call,
      };
      sent.body = withWireErrors(readMessages(request, shape, options), (error) =>
        toConnectError(error, logger, { route: path.slice(1), signal: incoming.signal }),
      );
    }
    const reply = await handler(sent);
    const body =
      reply.body === undefined ? {} : { body: paced(reply.body, () => breakOff(response)) };
    await universalResponseToNodeResponse({ ...reply, ...body }, response);
  }

  return {
    handles: (path) => handlers.has(path),
    handle(request, response) {
      answer(request, response).catch((error: unknown) => {
        if (error instanceof URIError && !response.headersSent) {
          refuseWithFixedText(request, response);
          return;
        }
        // Errors of handlers have become replies already: this is a client that disconnected, or
        // sent no authority.
        const { code, rawMessage } = ConnectError.from(error);
        deps.logger.debug({ code: Code[code], reason: rawMessage }, 'an RPC reply was not sent');
        breakOff(response);
      });
    },
    drain: () => draining.abort(),
  };
}

/**
 * Answers gRPC and gRPC-Web with INVALID_ARGUMENT and a fixed text. Connect quotes the message in
 * its error text, and cannot write that into a header when the quoted part ends within a character.
 */
function refuseWithFixedText(request: AnyRequest, response: AnyResponse): void {
  const http1 = response as ServerResponse;
  http1.writeHead(200, {
    'content-type': request.headers['content-type'] ?? 'application/grpc',
    'grpc-status': String(Code.InvalidArgument),
    'grpc-message': 'The message is malformed.',
  });
  http1.end();
}

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}

async function* withWireErrors(
  source: AsyncIterable<Uint8Array>,
  convert: (error: unknown) => ConnectError,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source;
  } catch (error) {
    throw convert(error);
  }
}

function toImplementation(method: Method, draining: AbortSignal) {
  if (method.kind === 'unary') {
    return (request: Message, context: HandlerContext) => {
      const work = method.handle(request, toCall(context));
      return context.timeoutMs() === undefined ? work : raceAbort(work, context.signal);
    };
  }
  if (method.kind === 'server_streaming') {
    return async function* serve(request: Message, context: HandlerContext) {
      yield* untilAborted(method.handle(request, toCall(context)), draining);
      assertNotDrained(draining, method.desc);
    };
  }
  return async function* serve(requests: AsyncIterable<Message>, context: HandlerContext) {
    yield* method.handle(untilAborted(requests, draining), toCall(context));
    assertNotDrained(draining, method.desc);
  };
}

function assertNotDrained(draining: AbortSignal, desc: DescMethod): void {
  if (!draining.aborted) return;
  throw new ConnectError(`${methodName(desc)}: the server is shutting down.`, Code.Unavailable);
}

function toCall(context: HandlerContext): Call {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error('a call came without its connection');
  return (exchange.call ??= newCall(context, exchange.transfer));
}

function newCall(context: HandlerContext, transfer: Transfer): Call {
  const authorization = context.requestHeader.get('authorization') ?? undefined;
  const requestId = context.requestHeader.get('x-request-id');
  return {
    bearer: parseBearer(authorization),
    signal: context.signal,
    protocol: protocols[context.protocolName as keyof typeof protocols],
    remote: transfer.remote,
    get room() {
      return transfer.room;
    },
    get sent() {
      return transfer.sent;
    },
    ...(requestId === null ? {} : { requestId }),
  };
}

/**
 * Restricts the percent-encoding of the grpc-message trailer to what gRPC requires. Connect encodes
 * commas, colons and slashes as well, which clients that decode with decodeURI (grpc-js) display as
 * `%2C`.
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
