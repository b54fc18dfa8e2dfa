import diagnosticsChannel from 'node:diagnostics_channel';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where Linux tells what it holds for each connection; other systems have no such place. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** Many bodies may be waited for at once; they share one reading of the tables. */
const FRESH_MS = 10;
const LOOK_MS = 20;
/**
 * What a system holds for a slow reader beyond what it has acknowledged to be read; grows from 128
 * KiB on Linux.
 */
const PEER_BUFFER_BYTES = 512 * 1024;
const LONGEST_EXTRA_MS = 3_000;
/** A peer that takes nothing for so long reads no more. */
const STALL_MS = 5_000;

/** The connection each streamed body went out on. undici tells it here and nowhere else. */
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

/** Bytes that the system has taken and the peer's has not; undefined where that cannot be known. */
async function sendQueue({ localPort, remotePort }: Socket): Promise<number | undefined> {
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
 * Follows a body that was handed to the operating system until the peer has taken it: the system
 * takes megabytes at once, which a peer on a slow line, or one that is busy, reads for seconds.
 * Looks first after `firstLookMs`, which is soon enough for a peer that answers. Resolves when the
 * peer was still reading then and its system has taken all now, or takes no more, with the time
 * that the peer needs, at the pace seen, for what its own system may hold; to undefined when there
 * was nothing to wait for.
 */
export async function untilTaken(
  body: unknown,
  follow: {
    readonly firstLookMs: number;
    /** There is nothing left to wait for. */
    readonly isOver: () => boolean;
    /** Called once, when the peer is found to be still reading. */
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
