import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendQueue } from '../net/send-queue.ts';
import type { AnyResponse } from './node-http.ts';

/** The interval of looks at a connection grows from the first to the longest. */
const LOOK_MS = { first: 20, longest: 250 } as const;
/**
 * How long an HTTP/1.1 client may leave a reply in its system's buffer without ending the
 * connection before the reply counts as received.
 */
const QUIET_MS = 5_000;
/** After this nothing is known of a reply that the client has not taken. */
const LONGEST_MS = 300_000;

/**
 * Resolves when it is known whether the client has the whole reply: true when it has, false when
 * the connection broke before. What the operating system has accepted proves nothing.
 *
 * - HTTP/2: the client answers a PING that is sent after the last byte.
 * - HTTP/1.1: the client's system has acknowledged every byte, and then the client sends its next
 *   request, ends the connection in order, or does not reset it for five seconds. Where the system
 *   does not show what was acknowledged (not Linux), the rest of this holds.
 */
export function receivedWhole(response: AnyResponse): Promise<boolean> {
  return 'stream' in response ? receivedStream(response) : receivedReply(response);
}

async function receivedStream({ stream }: Http2ServerResponse): Promise<boolean> {
  if (stream === undefined || stream.destroyed) return false;
  const { session } = stream;
  const socket = session?.socket;
  const watch = socket && watchOf(socket);
  await new Promise((resolve) => stream.once('close', resolve));
  if (session === undefined || watch === undefined) return false;
  if (!stream.writableFinished || stream.rstCode !== 0) return false;
  let answered = false;
  let asked = false;
  const ask = (): void => {
    // The session allows some unanswered PINGs at a time.
    asked ||= session.ping((error) => {
      answered = error === null;
    });
  };
  return look(() => {
    if (answered) return true;
    if (watch.isReset) return false;
    if (session.destroyed) return watch.isEnded;
    ask();
    return undefined;
  });
}

async function receivedReply(response: ServerResponse): Promise<boolean> {
  const { socket } = response;
  if (socket === null || response.closed) return response.writableFinished;
  const { localPort, remotePort } = socket;
  const watch = watchOf(socket);
  if (!response.shouldKeepAlive) closeAfterClient(socket);
  if (!response.writableFinished) {
    await new Promise((resolve) => {
      response.once('finish', resolve);
      response.once('close', resolve);
    });
  }
  if (!response.writableFinished) return false;
  // A client may have closed its side before it read.
  const hadEnded = watch.isEnded;
  const { bytesRead } = socket;
  let takenAt: number | undefined;
  return look(async () => {
    // The next request.
    if (socket.bytesRead > bytesRead) return true;
    const queued = await sendQueue({ localPort, remotePort });
    if (watch.isReset) return false;
    if (queued !== undefined && queued > 0) return undefined;
    if (watch.isEnded && !hadEnded) return true;
    // A connection that the server has closed stays in the list unless the client resets it.
    if (queued === undefined && socket.destroyed && process.platform === 'linux') return false;
    takenAt ??= performance.now();
    return performance.now() - takenAt >= QUIET_MS ? true : undefined;
  });
}

/** How long the service waits for the client to end the connection after it. */
const CLIENT_END_MS = 10_000;

/**
 * Has the service end only its side of a connection after its last reply, and close it when the client has
 * ended it, too. A connection that is closed at once does not tell any more how the client ended it.
 */
function closeAfterClient(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    const timer = setTimeout(() => socket.destroy(), CLIENT_END_MS);
    timer.unref();
    socket.once('close', () => clearTimeout(timer));
  };
}

/** How the client ended a connection. */
interface SocketWatch {
  isReset: boolean;
  isEnded: boolean;
}

/** The replies of a connection share one watch, so that it has listeners once. */
const watches = new WeakMap<Socket, SocketWatch>();

function watchOf(socket: Socket): SocketWatch {
  const known = watches.get(socket);
  if (known !== undefined) return known;
  const watch: SocketWatch = { isReset: false, isEnded: false };
  watches.set(socket, watch);
  socket.once('end', () => {
    watch.isEnded = true;
  });
  socket.once('close', (hadError) => {
    watch.isReset = hadError;
  });
  return watch;
}

/** Looks until there is a verdict; false when it takes too long. */
async function look(verdict: () => boolean | undefined | Promise<boolean | undefined>) {
  const startedAt = performance.now();
  let waitMs: number = LOOK_MS.first;
  while (performance.now() - startedAt < LONGEST_MS) {
    const known = await verdict();
    if (known !== undefined) return known;
    await sleep(waitMs, undefined, { ref: false });
    waitMs = Math.min(waitMs * 2, LOOK_MS.longest);
  }
  return false;
}
