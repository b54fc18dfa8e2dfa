import type { Readable, Writable } from 'node:stream';
import type { ProtocolMapping } from 'devtools-protocol/types/protocol-mapping.d.ts';
import { defined } from '../../domain/defined.ts';
import { type CdpMessage, createCdpMessageReader } from './cdp-message-reader.ts';

type Commands = ProtocolMapping.Commands;
type Events = ProtocolMapping.Events;

/** A command of the DevTools protocol. */
export type CdpCommand = keyof Commands;
/** The parameters of a command. */
export type CdpParams<Name extends CdpCommand> = Commands[Name]['paramsType'][0];
/** The result of a command. */
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
   * `closed`: the browser has ended. `timeout`: it did not reply in time. `too_large`: its reply
   * was too long. `refused`: it replied with an error, which is the message.
   */
  readonly kind: 'closed' | 'timeout' | 'too_large' | 'refused';

  constructor(kind: CdpError['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** For commands whose failure matters to nobody: what they concern, a request or a page, has ended. */
export function ignoreGone(): void {
  // Nothing is left to do.
}

/** Where a command goes, and how long its reply may take. */
export interface CdpOptions {
  /** The session of a target; absent for the browser itself. */
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
   * Calls the handlers for the events of a session ('' for the browser itself), in place of earlier
   * ones. `onDropped` is called with each event that was too long to be read, and the beginning of
   * its text.
   */
  listen(
    sessionId: string,
    handlers: CdpHandlers,
    onDropped?: (event: CdpEvent, head: string) => void,
  ): void;
  /** Removes the handlers of a session. */
  unlisten(sessionId: string): void;
  /** Resolves when the browser has ended. */
  readonly closed: Promise<void>;
}

const TIMEOUT_MS = 20_000;

interface PendingCommand {
  readonly name: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: CdpError) => void;
  readonly timer: NodeJS.Timeout;
}

interface Session {
  readonly handlers: CdpHandlers;
  readonly onDropped: ((event: CdpEvent, head: string) => void) | undefined;
}

/**
 * Speaks the DevTools protocol over a browser's two pipes. A page can make the browser send long
 * messages, so their length is bounded, and events that nobody handles are not parsed.
 */
export function createCdpConnection(toBrowser: Writable, fromBrowser: Readable): CdpConnection {
  const pending = new Map<number, PendingCommand>();
  const sessions = new Map<string, Session>();
  const { promise: closed, resolve: setClosed } = Promise.withResolvers<void>();
  let isClosed = false;
  let lastId = 0;

  function end(): void {
    if (isClosed) return;
    isClosed = true;
    for (const [id, { name }] of pending) reject(id, closedError(name));
    sessions.clear();
    setClosed();
  }

  /** Removes a command that is settled now; undefined when it was settled before. */
  function settle(id: number): PendingCommand | undefined {
    const command = pending.get(id);
    if (command === undefined) return undefined;
    pending.delete(id);
    clearTimeout(command.timer);
    return command;
  }

  function reject(id: number, error: CdpError): void {
    settle(id)?.reject(error);
  }

  function onMessage(message: CdpMessage): void {
    if (message.id === undefined) {
      const { handlers } = sessions.get(message.sessionId ?? '') ?? {};
      const handler = handlers?.[message.method as CdpEvent] as
        | ((params: unknown) => void)
        | undefined;
      handler?.(message.params);
      return;
    }
    const command = settle(message.id);
    if (command === undefined) return;
    const { error } = message;
    if (error === undefined) command.resolve(message.result);
    else command.reject(new CdpError('refused', `${command.name}: ${error.message ?? ''}`));
  }

  const read = createCdpMessageReader({
    onMessage,
    onReplyDropped(id) {
      const name = pending.get(id)?.name ?? '';
      reject(id, new CdpError('too_large', `${name}: the answer is too long`));
    },
    onEventDropped: (event, sessionId, head) => sessions.get(sessionId)?.onDropped?.(event, head),
    isHandled(event) {
      for (const { handlers } of sessions.values()) if (event in handlers) return true;
      return false;
    },
  });

  fromBrowser.on('data', (piece: Buffer) => {
    if (!isClosed) read(piece);
  });
  for (const stream of [toBrowser, fromBrowser]) {
    stream.on('error', end);
    stream.on('close', end);
  }
  fromBrowser.on('end', end);

  return {
    closed,
    send(command, params = {}, { sessionId, timeoutMs = TIMEOUT_MS } = {}) {
      if (isClosed) return Promise.reject(closedError(command));
      const { promise, resolve, reject: rejectCommand } = Promise.withResolvers<unknown>();
      lastId += 1;
      const id = lastId;
      const timer = setTimeout(
        () => reject(id, new CdpError('timeout', `${command}: no answer in time`)),
        timeoutMs,
      );
      timer.unref();
      pending.set(id, { name: command, resolve, reject: rejectCommand, timer });
      const message = defined({ id, method: command, params, sessionId });
      toBrowser.write(`${JSON.stringify(message)}\0`);
      return promise as Promise<CdpResult<typeof command>>;
    },
    listen(sessionId, handlers, onDropped) {
      if (!isClosed) sessions.set(sessionId, { handlers, onDropped });
    },
    unlisten: (sessionId) => void sessions.delete(sessionId),
  };
}

function closedError(command: string): CdpError {
  return new CdpError('closed', `${command}: the browser has ended`);
}
