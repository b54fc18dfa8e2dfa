import diagnosticsChannel from 'node:diagnostics_channel';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where Linux lists the bytes queued for each connection. Other systems have no such file. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** Bodies that are watched at the same time share one reading of the tables. */
const FRESH_MS = 10;
const LOOK_MS = 20;
/**
 * How much a peer's system may have acknowledged that its program has not read; on Linux this grows
 * from 128 KiB.
 */
const PEER_BUFFER_BYTES = 512 * 1024;
const LONGEST_EXTRA_MS = 3_000;
/** A peer that takes nothing for this long counts as not reading. */
const STALL_MS = 5_000;

/** The connection that each streamed body was sent on. undici reports it only on this channel. */
const sockets = new WeakMap<Readable, Socket>();
diagnosticsChannel.subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { request?: { body?: unknown }; socket?: Socket };
  if (request?.body instanceof Readable && socket !== undefined) sockets.set(request.body, socket);
});

let lastReading: { readonly at: number; readonly text: Promise<string> } | undefined;

function tables(): Promise<string> {
  const at = performance.now();
  if (lastReading === undefined || at - lastReading.at > FRESH_MS) {
    const texts = TABLES.map((table) => readFile(table, 'latin1').catch(() => ''));
    lastReading = { at, text: Promise.all(texts).then((each) => each.join('\n')) };
  }
  return lastReading.text;
}

/**
 * Bytes that this system has accepted and the peer's has not; undefined where that is not known, as
 * for a connection that was reset.
 */
export async function sendQueue({
  localPort,
  remotePort,
}: {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
}): Promise<number | undefined> {
  if (localPort === undefined || remotePort === undefined) return undefined;
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
  // sl local_address rem_address st tx_queue:rx_queue ...
  const line = new RegExp(
    `^ *\\d+: \\w+:${hex(localPort)} \\w+:${hex(remotePort)} \\w+ (\\w+):`,
    'm',
  );
  const queue = line.exec(await tables())?.[1];
  return queue === undefined ? undefined : Number.parseInt(queue, 16);
}

/**
 * Waits until the peer has taken a body that was handed to the operating system. The system accepts
 * megabytes at once, which a peer that is busy or on a slow line needs seconds to read. The first
 * look is after `firstLookMs`, early enough for a peer that answers quickly. Resolves to undefined
 * when nothing was left to read by then. Otherwise resolves when the peer's system has taken
 * everything, with the milliseconds that the peer needs, at the pace seen, for what its system
 * still holds. It resolves with 0 when the peer has stopped reading.
 */
export async function untilTaken(
  body: unknown,
  follow: {
    readonly firstLookMs: number;
    /** Whether waiting has become pointless. */
    readonly isOver: () => boolean;
    /** Called once, if the peer is still reading at the first look. */
    readonly onReading: () => void;
  },
): Promise<number | undefined> {
  if (!(body instanceof Readable)) return undefined;
  await sleep(follow.firstLookMs, undefined, { ref: false });
  const socket = follow.isOver() ? undefined : sockets.get(body);
  if (socket === undefined) return undefined;
  const first = (await sendQueue(socket)) ?? 0;
  if (first === 0 || follow.isOver()) return undefined;
  follow.onReading();
  const startedAt = performance.now();
  let movedAt = startedAt;
  let left = first;
  while (left > 0 && !follow.isOver() && performance.now() - movedAt < STALL_MS) {
    await sleep(LOOK_MS, undefined, { ref: false });
    const now = (await sendQueue(socket)) ?? 0;
    if (now !== left) movedAt = performance.now();
    left = now;
  }
  if (left > 0) return 0;
  const bytesPerMs = first / (performance.now() - startedAt);
  return Math.min(PEER_BUFFER_BYTES / bytesPerMs, LONGEST_EXTRA_MS);
}
