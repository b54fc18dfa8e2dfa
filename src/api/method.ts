import type {
  DescMethod,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { TokenOwner, TokenType } from '../domain/account.ts';
import type { Room } from '../http/room.ts';

/** The owner of a call's token, once it has been checked. */
export interface KnownCaller {
  readonly token: string;
  readonly owner: TokenOwner;
}

/** What a handler knows of its call, in every protocol. */
export interface Call {
  /** The token of `authorization: Bearer`. Never logged. */
  readonly bearer: string | undefined;
  /** Aborted when the client disconnects, its deadline passes, or the server closes. */
  readonly signal: AbortSignal;
  readonly protocol: 'rest' | 'connect' | 'grpc' | 'grpc-web';
  /** The request's `x-request-id`: the client's, or one that it was given. */
  readonly requestId?: string;
  /** The trace that the call belongs to (W3C `traceparent`). */
  readonly traceparent?: string;
  /** The address of the client; empty when unknown. */
  readonly remote: string;
  /** The memory that the request and its reply take; released when the reply has been sent. */
  readonly room: Room;
  /**
   * Resolves to true when the client has the whole reply, and to false when the connection broke
   * before or nothing was known of it for minutes. Ask for it before the reply is sent.
   */
  readonly received: Promise<boolean>;
  /** Set once a token of the call has been checked. */
  caller?: KnownCaller;
  /** Set once the admin token of the call has been checked. */
  isOperator?: boolean;
  /** Why the call failed, for the log: the reason that the client was told. */
  failure?: string;
  /** Set where the call counts as one by this token of its account, whichever it carries. */
  countsAs?: TokenType;
}

/** A method with one request and one response. */
export interface UnaryMethod {
  readonly kind: 'unary';
  readonly desc: DescMethod;
  handle(request: Message, call: Call): Promise<MessageInitShape<DescMethod['output']>>;
}

/** A method with one request and a stream of responses. */
export interface ServerStreamMethod {
  readonly kind: 'server_streaming';
  readonly desc: DescMethod;
  handle(request: Message, call: Call): AsyncIterable<MessageInitShape<DescMethod['output']>>;
}

/** A method with a stream of requests and a stream of responses. */
export interface StreamMethod {
  readonly kind: 'bidi_streaming';
  readonly desc: DescMethod;
  handle(
    requests: AsyncIterable<Message>,
    call: Call,
  ): AsyncIterable<MessageInitShape<DescMethod['output']>>;
}

/** One row of the table that Connect and the REST gateway both mount. */
export type Method = UnaryMethod | ServerStreamMethod | StreamMethod;

/** The plain function that answers a method, typed by the method's descriptor. */
export type Handler<M extends DescMethod> = M['methodKind'] extends 'unary'
  ? (
      request: MessageShape<M['input']>,
      call: Call,
    ) => Promise<MessageInitShape<M['output']>> | MessageInitShape<M['output']>
  : M['methodKind'] extends 'server_streaming'
    ? (
        request: MessageShape<M['input']>,
        call: Call,
      ) => AsyncIterable<MessageInitShape<M['output']>>
    : (
        requests: AsyncIterable<MessageShape<M['input']>>,
        call: Call,
      ) => AsyncIterable<MessageInitShape<M['output']>>;

/** One {@link Handler} for each method of a service, by the method's local name. */
export type Implementation<S extends DescService> = {
  readonly [Name in keyof S['method']]: Handler<S['method'][Name]>;
};

/**
 * Makes the table rows of a service. The compiler checks `implementation` against the generated
 * types. Throws when it lacks a method, or when the service has a client-streaming method, which
 * the table does not support.
 */
export function toMethods<S extends DescService>(
  service: S,
  implementation: Implementation<S>,
): Method[] {
  const handlers = implementation as Readonly<Record<string, unknown>>;
  return service.methods.map((desc) => toMethod(desc, handlers[desc.localName]));
}

/** The name of a method in logs and tables: `package.Service/Method`. */
export function methodName(desc: DescMethod): string {
  return `${desc.parent.typeName}/${desc.name}`;
}

function toMethod(desc: DescMethod, handler: unknown): Method {
  if (typeof handler !== 'function') throw new Error(`${methodName(desc)} has no handler`);
  if (desc.methodKind === 'unary') {
    const unary = handler as UnaryMethod['handle'];
    return { kind: 'unary', desc, handle: async (request, call) => unary(request, call) };
  }
  if (desc.methodKind === 'server_streaming') {
    return { kind: 'server_streaming', desc, handle: handler as ServerStreamMethod['handle'] };
  }
  if (desc.methodKind === 'bidi_streaming') {
    return { kind: 'bidi_streaming', desc, handle: handler as StreamMethod['handle'] };
  }
  throw new Error(`${methodName(desc)} is client-streaming`);
}
