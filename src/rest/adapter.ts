import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type MessageShape,
} from '@bufbuild/protobuf';
import { type Method, methodName, type UnaryMethod } from '../api/method.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';
import { compileRequestBinder } from './request-binder.ts';
import { compileMessageWriter } from './write-json.ts';

/**
 * A hand-written handler of one exact path, for reply shapes that a rule cannot express. Adapters
 * are matched before the rules.
 */
export interface Adapter {
  /** Upper case. HEAD is answered where GET is, unless GET changes something. */
  readonly methods: readonly string[];
  /** Whether GET changes something, so that HEAD is refused. */
  readonly getChanges?: boolean;
  /** Longest body of a request whose query or header has an account's token. Default 64 KiB. */
  readonly maxBodyBytes?: number;
  /** The whole path, without variables. */
  readonly path: string;
  handle(exchange: Exchange): Promise<Reply>;
}

/** What adapters are built with; everything is compiled and checked when the process starts. */
export interface AdapterToolkit {
  /** Compiles the binder of a method's request; `body` as in a rule. */
  binder<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    body?: string,
  ): (exchange: Exchange) => Promise<MessageShape<I>>;
  /** Calls a method; the response has all its fields. Throws what the method throws. */
  caller<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
  ): (request: MessageShape<I>, exchange: Exchange) => Promise<MessageShape<O>>;
  /** Compiles the writer of a message, the same as the gateway's. */
  writer<M extends DescMessage>(desc: M): (message: MessageShape<M>) => string;
}

/** Makes adapters with the gateway's toolkit. */
export type AdapterFactory = (toolkit: AdapterToolkit) => readonly Adapter[];

/** Makes the toolkit over a table of methods. Asking for a method that the table lacks throws. */
export function adapterToolkit(methods: readonly Method[]): AdapterToolkit {
  return {
    binder<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, body = '') {
      const bind = compileRequestBinder(method.input, body, `adapter of ${methodName(method)}`);
      return async (exchange: Exchange) => (await bind(exchange)) as MessageShape<I>;
    },
    caller<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>) {
      const found = unaryIn(methods, method);
      return async (request: MessageShape<I>, exchange: Exchange) =>
        create(method.output, (await found.handle(request, exchange.call)) as never);
    },
    writer: (desc) => compileMessageWriter(desc),
  };
}

function unaryIn(methods: readonly Method[], desc: DescMethod): UnaryMethod {
  const name = methodName(desc);
  const found = methods.find((method) => methodName(method.desc) === name);
  if (found?.kind !== 'unary') throw new Error(`the table has no unary method ${name}`);
  return found;
}
