import type { CdpEvent } from './cdp-connection.ts';

/** A message of the DevTools protocol: the reply to a command, or an event. */
export interface CdpMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly message?: string };
  readonly sessionId?: string;
}

/** What a reader reports. */
export interface CdpMessageEvents {
  readonly onMessage: (message: CdpMessage) => void;
  /** The reply to the command with this id was too long and is dropped. */
  readonly onReplyDropped: (id: number) => void;
  /** An event was too long and was dropped. `head` is the beginning of its text. */
  readonly onEventDropped: (event: CdpEvent, sessionId: string, head: string) => void;
  /** Whether anybody handles the event; others are not parsed. */
  readonly isHandled: (event: CdpEvent) => boolean;
}

/** A page determines how long an event is: it writes to the console, and fetches `data:` URLs. */
const MAX_EVENT_BYTES = 1024 * 1024;
/** Enough for a picture of noise, in base64. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024;
/** The id of a reply and the name of an event are at the beginning. */
const HEAD_BYTES = 256;
/** The session is named at the end. */
const TAIL_BYTES = 128;

/**
 * Makes a reader that splits a byte stream into messages, which are separated by zero bytes. A
 * message above its limit is dropped while it arrives. Returns the function to call with each piece
 * of the stream.
 */
export function createCdpMessageReader(events: CdpMessageEvents): (piece: Buffer) => void {
  let parts: Buffer[] = [];
  let length = 0;
  /**
   * Set while the current message is dropped: how an event began, '' for a reply. Undefined for a
   * message that is kept.
   */
  let droppedHead: string | undefined;
  let tail = Buffer.alloc(0);

  function append(part: Buffer): void {
    if (droppedHead !== undefined) {
      tail = Buffer.concat([tail, part.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES);
      return;
    }
    parts.push(part);
    length += part.length;
    if (length <= MAX_EVENT_BYTES) return;
    const head = messageHead(parts);
    const id = replyId(head);
    if (id === undefined || length > MAX_REPLY_BYTES) drop(head, id);
  }

  function drop(head: string, id: number | undefined): void {
    tail = Buffer.concat(parts.map((each) => each.subarray(-TAIL_BYTES))).subarray(-TAIL_BYTES);
    parts = [];
    droppedHead = id === undefined ? head : '';
    if (id !== undefined) events.onReplyDropped(id);
  }

  function finish(): void {
    const message = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    const head = droppedHead;
    parts = [];
    length = 0;
    droppedHead = undefined;
    if (head !== undefined) reportDropped(head);
    else if (message !== undefined && isWanted(message)) {
      events.onMessage(JSON.parse(message.toString('utf8')) as CdpMessage);
    }
  }

  function reportDropped(head: string): void {
    const event = eventName(head);
    const sessionId = /"sessionId":"(\w+)"\}$/.exec(tail.toString('latin1'))?.[1] ?? '';
    if (event !== undefined) events.onEventDropped(event, sessionId, head);
  }

  function isWanted(message: Buffer): boolean {
    const event = eventName(messageHead([message]));
    return event === undefined ? message.length > 0 : events.isHandled(event);
  }

  return (piece) => {
    let from = 0;
    for (;;) {
      const at = piece.indexOf(0, from);
      if (at < 0) break;
      append(piece.subarray(from, at));
      finish();
      from = at + 1;
    }
    if (from < piece.length) append(piece.subarray(from));
  };
}

function messageHead(parts: readonly Buffer[]): string {
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
