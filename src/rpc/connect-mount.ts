import { setMaxListeners } from 'node:events';
import type { DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextValues,
  type MethodImpl,
  type Transport,
} from '@connectrpc/connect';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Admission } from '../api/admission.ts';
import { toConnectError } from '../api/errors.ts';
import { type Call, type Method, methodName } from '../api/method.ts';
import { methodPolicy } from '../api/policy.ts';
import { createTransfer } from '../api/transfer.ts';
import { parseBearer } from '../domain/header-rules.ts';
import type { Logger } from '../domain/logger.ts';
import { type AnyRequest, type AnyResponse, breakOff } from '../http/node-http.ts';
import { paced } from '../http/paced.ts';
import { requestNote } from '../http/request-note.ts';
import { parseTarget } from '../http/request-target.ts';
import { createUnlimitedPools, type RoomPools } from '../http/room.ts';
import { compileJsonCheck, type RefusedElement } from './check-json.ts';
import { refuseWithFixedText, writePlainMessages } from './grpc-message.ts';
import { binaryType, encodeText, isGrpcWebText, textType } from './grpc-web-text.ts';
import { toImplementation } from './implementation.ts';
import {
  acceptCompression,
  checkQueryMessage,
  type IntakeShape,
  parseWireShape,
  readMessages,
  type WireShape,
} from './intake.ts';
import { jsonOptions } from './json-options.ts';
import { createLocalTransport } from './local-transport.ts';
import { capTimeouts } from './long-timeouts.ts';
import { exchangeKey, type RpcExchange, toCall } from './rpc-exchange.ts';
import { sendTrailersOnly } from './trailers-only.ts';

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
  /**
   * Whether the method of a request needs a token and its headers have one, so that it is answered
   * or let in before its body is read.
   */
  checksHeader(request: AnyRequest): boolean;
  /** Calls the table from within, with a token and on behalf of a request of another protocol. */
  transport(request: AnyRequest, response: AnyResponse, token: string): Transport;
  /** Answers a request whose path {@link ConnectMount.handles} takes. Never throws. */
  handle(request: AnyRequest, response: AnyResponse): void;
  /**
   * Ends streams: received messages are answered, then the client gets UNAVAILABLE. Other calls
   * continue.
   */
  drain(): void;
}

interface MountedMethod {
  readonly method: Method;
  readonly shape: IntakeShape;
}

/** Mounts the table. */
export function createConnectMount(deps: ConnectMountDeps): ConnectMount {
  const { admission, pools = createUnlimitedPools(), readMaxBytes, logger } = deps;
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const router = createConnectRouter({
    acceptCompression,
    writeMaxBytes: deps.writeMaxBytes,
  });
  const rows = new Map<string, MountedMethod>();

  function mount(method: Method): void {
    const own = methodPolicy(method.desc);
    const policy =
      readMaxBytes === undefined ? own : { ...own, maxBytes: Math.min(readMaxBytes, own.maxBytes) };
    const route = methodName(method.desc);
    const { input } = method.desc;
    const options = jsonOptions(method.desc);
    const shape = { input, checkJson: compileJsonCheck(input, options), policy };
    const implementation = toImplementation(method, draining.signal) as MethodImpl<DescMethod>;
    router.rpc(method.desc, implementation, {
      readMaxBytes: policy.maxBytes,
      jsonOptions: options,
      async requestGate(context) {
        const call = toCall(context);
        try {
          // Otherwise the token may be in the message, which then has to be small, and is checked
          // after it has been read.
          if (call.bearer !== undefined) {
            const called = { access: policy.access, method: method.desc.name };
            await admission?.admit(called, '', call);
          }
          if (context.requestMethod === 'GET') {
            await checkQueryMessage(context.url, shape);
          }
        } catch (error) {
          throw toConnectError(error, logger, { route, call });
        }
      },
    });
    rows.set(`/${route}`, { method, shape });
  }
  for (const method of deps.methods) mount(method);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  /** The messages of a request as they may be read: within the limits, and decompressed. */
  function checkedMessages(
    request: AnyRequest,
    wire: WireShape,
    { method, shape }: MountedMethod,
    exchange: RpcExchange,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const options = {
      ...shape,
      isStream: method.kind === 'bidi_streaming',
      call: () => exchange.call as Call,
      onChecked: (refused: readonly RefusedElement[]) => exchange.refused.push(refused),
    };
    const route = methodName(method.desc);
    return withWireErrors(readMessages(request, wire, options), (error) =>
      toConnectError(error, logger, { route, call: exchange.call }),
    );
  }

  function newExchange(request: AnyRequest, response: AnyResponse): RpcExchange {
    const note = requestNote(request);
    const exchange: RpcExchange = {
      transfer: createTransfer(request, response, pools, () => exchange.call?.caller),
      refused: [],
      onCall(call) {
        note.call = call;
        note.protocol = call.protocol;
      },
    };
    return exchange;
  }

  async function answer(request: AnyRequest, response: AnyResponse): Promise<void> {
    const { path } = parseTarget(request.url ?? '/');
    const handler = handlers.get(path);
    const mounted = rows.get(path);
    if (handler === undefined || mounted === undefined) throw new Error('not a path of the table');
    const contentType = request.headers['content-type'];
    requestNote(request).route = methodName(mounted.method.desc);
    const isGrpc = /^application\/grpc(?!-web)/.test(contentType ?? '');
    if (isGrpc) writePlainMessages(response);
    const exchange = newExchange(request, response);
    const values = createContextValues().set(exchangeKey, exchange);
    const incoming = universalRequestFromNodeRequest(request, response, undefined, values);
    capTimeouts(incoming.header);
    const isText = isGrpcWebText(contentType);
    if (isText) incoming.header.set('content-type', binaryType(contentType ?? ''));
    const shape = parseWireShape(contentType);
    const sent = { ...incoming, body: nothing() };
    if (shape !== undefined) {
      if (!shape.isFramed) dropCodingAndLength(sent.header);
      sent.body = checkedMessages(request, shape, mounted, exchange);
    }
    const handled = await handler(sent);
    const reply = isGrpc ? await sendTrailersOnly(handled, response) : handled;
    if (reply === undefined) return;
    const replied =
      reply.body === undefined ? undefined : isText ? encodeText(reply.body) : reply.body;
    const body = replied === undefined ? {} : { body: paced(replied, () => breakOff(response)) };
    if (isText) {
      const type = reply.header?.get('content-type') ?? '';
      reply.header?.set('content-type', textType(type));
    }
    await universalResponseToNodeResponse({ ...reply, ...body }, response);
  }

  return {
    handles: (path) => handlers.has(path),
    checksHeader({ headers, url = '/' }) {
      if (parseBearer(headers.authorization) === undefined) return false;
      return rows.get(parseTarget(url).path)?.shape.policy.access !== 'public';
    },
    transport: (request, response, token) =>
      createLocalTransport(router.handlers, token, () => newExchange(request, response)),
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

/** The body is decompressed before the handler gets it, and may have lost elements that are refused. */
function dropCodingAndLength(header: Headers): void {
  const encoding = header.get('content-encoding');
  header.delete('content-length');
  if (acceptCompression.some(({ name }) => name === encoding)) header.delete('content-encoding');
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
