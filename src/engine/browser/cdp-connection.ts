import type { Readable, Writable } from 'node:stream';
import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.d.ts';

type Commands = ProtocolMapping.Commands;
type Events = ProtocolMapping.Events;

/** A command of the DevTools protocol. */
export type CdpCommand = keyof Commands;
/** What a command takes. */
export type CdpParams<Name extends CdpCommand> = Commands[Name]['paramsType'][0];
/** What a command gives back. */
export type CdpResult<Name extends CdpCommand> = Commands[Name]['returnType'];
/** An event of the DevTools protocol. */
export type CdpEvent = keyof Events;

/** Handlers by event. */
export type CdpHandlers = {
  readonly [Name in CdpEvent]?: (params: Events[Name][0]) => void;
};

/** Why a command has no result. */
export class CdpError extends Error {
  override readonly name = 'CdpError';
  /**
   * `closed`: the browser has ended. `timeout`: it did not answer in time. `too_large`: its answer
   * was longer than what is read. `refused`: it answered with an error, which is the message.
   */
  readonly kind: 'closed' | 'timeout' | 'too_large' | 'refused';

  constructor(kind: CdpError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Where a command goes, and how long its answer may take. */
export interface CdpOptions {
  /** A target's; absent for the browser itself. */
  readonly sessionId?: string;
  /** Default 20 s. */
  readonly timeoutMs?: number;
}

/** The connection to a browser. */
export interface CdpConnection {
  /** Rejects with a {@link CdpError}. */
  send<Name extends CdpCommand>(
    command: Name,
    params?: CdpParams<Name>,
    options?: CdpOptions,
  ): Promise<CdpResult<Name>>;
  /**
   * Calls the handlers for the events of a session (of the browser itself for ''), in place of
   * those before. `onDropped` is told of an event that was too long to be read, with the beginning
   * of its text.
   */
  listen(
    sessionId: string,
    handlers: CdpHandlers,
    onDropped?: (event: CdpEvent, head: string) => void,
  ): void;
  /** Calls nobody any more for that session. */
  unlisten(sessionId: string): void;
  /** Resolves when the browser has ended. */
  readonly closed: Promise<void>;
}

const TIMEOUT_MS = 20_000;
/** A page decides how long an event is: it writes to the console, and fetches `data:` addresses. */
const MAX_EVENT_BYTES = 1024 * 1024;
/** Of a picture of noise, in base64. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;
const HEAD_BYTES = 256;
/** The session is named at the end. */
const TAIL_BYTES = 128;

interface Call {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: CdpError) => void;
  readonly timer: NodeJS.Timeout;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message?: string };
  readonly sessionId?: string;
}

/**
 * Speaks the DevTools protocol over a browser's two pipes. What a page can make the browser say is
 * bounded: a message above its limit is dropped while it arrives, and an event nobody handles is
 * not parsed.
 */
export function createCdpConnection(toBrowser: Writable, fromBrowser: Readable): CdpConnection {
  const calls = new Map<number, Call>();
  const sessions = new Map<string, CdpHandlers>();
  const droppedListeners = new Map<string, (event: CdpEvent, head: string) => void>();
  const { promise: closed, resolve: setClosed } = Promise.withResolvers<void>();
  let isClosed = false;
  let lastId = 0;
  let parts: Buffer[] = [];
  let length = 0;
  /**
   * What is arriving is dropped up to its end: how an event began, '' for an answer. Undefined for
   * what is kept.
   */
  let dropping: string | undefined;
  let tail = Buffer.alloc(0);

  function end(): void {
    if (isClosed) return;
    isClosed = true;
    for (const [id, call] of calls) settle(id, (each) => each.reject(closedError(call.method)));
    sessions.clear();
    droppedListeners.clear();
    parts = [];
    setClosed();
  }

  function settle(id: number, how: (call: Call) => void): void {
    const call = calls.get(id);
    if (call === undefined) return;
    calls.delete(id);
    clearTimeout(call.timer);
    how(call);
  }

  function take(part: Buffer): void {
    if (dropping !== undefined) {
      tail = Buffer.concat([tail, part.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      return;
    }
    parts.push(part);
    length += part.length;
    if (length <= MAX_EVENT_BYTES) return;
    const head = headOf(parts);
    const id = replyId(head);
    if (id !== undefined && length <= MAX_REPLY_BYTES) return;
    tail = Buffer.concat(parts.map((each) => each.subarray(-TAIL_BYTES))).subarray(-TAIL_BYTES);
    parts = [];
    dropping = id === undefined ? head : '';
    if (id === undefined) return;
    settle(id, (call) =>
      call.reject(new CdpError('too_large', `${call.method}: the answer is too long`)),
    );
  }

  function finish(): void {
    const whole = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    const wanted = dropping === undefined && whole !== undefined && isWanted(whole);
    const head = dropping ?? '';
    parts = [];
    length = 0;
    dropping = undefined;
    if (head !== '') tellDropped(head);
    if (wanted) dispatch(JSON.parse(whole.toString('utf8')) as Message);
  }

  function tellDropped(head: string): void {
    const event = eventName(head);
    const sessionId = /"sessionId":"(\w+)"\}$/.exec(tail.toString('latin1'))?.[1] ?? '';
    if (event !== undefined) droppedListeners.get(sessionId)?.(event, head);
  }

  function isWanted(message: Buffer): boolean {
    const head = headOf([message]);
    const method = eventName(head);
    if (method === undefined) return message.length > 0;
    for (const handlers of sessions.values()) if (method in handlers) return true;
    return false;
  }

  function dispatch(message: Message): void {
    if (message.id === undefined) {
      const handlers = sessions.get(message.sessionId ?? '');
      const handler = handlers?.[message.method as CdpEvent] as
        | ((params: unknown) => void)
        | undefined;
      handler?.(message.params);
      return;
    }
    settle(message.id, (call) => {
      if (message.error === undefined) call.resolve(message.result);
      else call.reject(new CdpError('refused', `${call.method}: ${message.error.message ?? ''}`));
    });
  }

  fromBrowser.on('data', (chunk: Buffer) => {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(0, from);
      if (at < 0) break;
      take(chunk.subarray(from, at));
      finish();
      from = at + 1;
    }
    if (from < chunk.length) take(chunk.subarray(from));
  });
  for (const stream of [toBrowser, fromBrowser]) {
    stream.on('error', end);
    stream.on('close', end);
  }
  fromBrowser.on('end', end);

  return {
    closed,
    send(command, params, options = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      if (isClosed) return Promise.reject(closedError(command));
      lastId += 1;
      const id = lastId;
      const timer = setTimeout(
        () =>
          settle(id, (call) =>
            call.reject(new CdpError('timeout', `${command}: no answer in time`)),
          ),
        options.timeoutMs ?? TIMEOUT_MS,
      );
      timer.unref();
      calls.set(id, { method: command, resolve, reject, timer });
      const { sessionId } = options;
      toBrowser.write(
        `${JSON.stringify({ id, method: command, params: params ?? {}, ...(sessionId === undefined ? {} : { sessionId }) })}\0`,
      );
      return promise as Promise<CdpResult<typeof command>>;
    },
    listen(sessionId, handlers, onDropped) {
      if (isClosed) return;
      sessions.set(sessionId, handlers);
      if (onDropped === undefined) droppedListeners.delete(sessionId);
      else droppedListeners.set(sessionId, onDropped);
    },
    unlisten(sessionId) {
      sessions.delete(sessionId);
      droppedListeners.delete(sessionId);
    },
  };
}

function closedError(method: string): CdpError {
  return new CdpError('closed', `${method}: the browser has ended`);
}

function headOf(parts: readonly Buffer[]): string {
  const [first] = parts;
  if (first === undefined) return '';
  const head = first.length >= HEAD_BYTES ? first : Buffer.concat(parts.slice(0, HEAD_BYTES));
  return head.subarray(0, HEAD_BYTES).toString('latin1');
}

function eventName(head: string): CdpEvent | undefined {
  return /^\{"method":"([\w.]+)"/.exec(head)?.[1] as CdpEvent | undefined;
}

function replyId(head: string): number | undefined {
  const id = /^\{"id":(\d+)/.exec(head)?.[1];
  return id === undefined ? undefined : Number(id);
}
