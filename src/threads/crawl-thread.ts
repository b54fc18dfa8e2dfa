import { isUtf8 } from 'node:buffer';
import { parentPort, workerData } from 'node:worker_threads';
import { createBatchedPort, type Messages } from '../domain/batched-port.ts';
import { systemClock } from '../domain/clock.ts';
import { defined } from '../domain/defined.ts';
import { discard } from '../domain/discard.ts';
import { inTurns } from '../domain/in-turns.ts';
import type { Logger } from '../domain/logger.ts';
import type { SessionCookie } from '../domain/session-cookies.ts';
import { createTransientMap } from '../domain/transient-map.ts';
import type { CookieSession, CrawlTask, Page, ReadBody } from '../engine/engine.ts';
import { createHttpEngine } from '../engine/http/http-engine.ts';
import { readBody } from '../engine/http/read-body.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import { createHttpClient } from '../net/create-http-client.ts';
import type { Room } from '../net/http-client.ts';
import { buildResult, needsDocument, type ResultInput } from './build-result.ts';
import { largeBodies } from './large-bodies.ts';
import { watchService } from './service-beat.ts';
import { createStartQueue } from './start-queue.ts';
import {
  BASE_BYTES,
  type CrawlThreadSettings,
  type FromCrawlThread,
  type ToCrawlThread,
  threadState,
  transferable,
} from './thread-messages.ts';
import { yieldToService } from './thread-priority.ts';

// The program of a crawl thread: requests, redirects, decoding, character sets, block pages, results
// and their compression. All that a site sends is read here, outside the service's thread.

const BEAT_MS = 100;

/** Starting a crawl takes about 50 µs: a slice starts some twenty. */
const START_SLICE_MS = 1;

interface Running {
  readonly abort: AbortController;
  /** Resolves the pending request for room. */
  roomGranted: (() => void) | undefined;
}

const port = parentPort;
if (port === null) throw new Error('this file is a worker');
yieldToService();
const settings = workerData as CrawlThreadSettings;
const { network, limits, identity, state: buffer } = settings;
const state = threadState(buffer);
const { post } = createBatchedPort<FromCrawlThread>(port);
const running = createTransientMap<number, Running>();

const log =
  (level: 'debug' | 'info' | 'warn' | 'error') =>
  (fields: object, message: string): void =>
    post({ kind: 'log', level, fields, message });
const logger: Logger = {
  debug: log('debug'),
  info: log('info'),
  warn: log('warn'),
  error: log('error'),
};

/**
 * A list comes back to a host after some seconds, and most servers keep idle connections for a minute.
 * An idle TLS connection takes some 50 KB.
 */
const IDLE_MS = 20_000;
const MAX_ORIGINS = 512;

const client = createHttpClient({
  ...network,
  idleMs: IDLE_MS,
  maxOrigins: MAX_ORIGINS,
  ready: watchService(state),
  onRefused: (refused) => post({ kind: 'refused', refused }),
  onNoSocket: (code) => post({ kind: 'no_socket', code }),
});
const engine = createHttpEngine({
  client,
  clock: systemClock,
  limits,
  ...defined({ identity }),
  logger,
});

/** Room for one crawl's bodies: the base, and the bytes that the service grants beyond it. */
function createRoom(id: number, crawl: Running): Room {
  const room = {
    bytes: BASE_BYTES,
    async grow(wanted: number): Promise<void> {
      const granted = Promise.withResolvers<void>();
      crawl.roomGranted = granted.resolve;
      post({ kind: 'wants', id, bytes: wanted });
      await granted.promise;
      room.bytes = wanted;
    },
    reset(): void {
      if (room.bytes === BASE_BYTES) return;
      room.bytes = BASE_BYTES;
      post({ kind: 'gives', id });
    },
  };
  return room;
}

/** The session of one crawl, as the service read it. */
function createSession(id: number, cookies: readonly SessionCookie[]): CookieSession {
  return {
    read: async () => cookies,
    change: (changes) => post({ kind: 'cookies', id, changes }),
  };
}

/** Bodies up to this take a millisecond or two at most. */
const SMALL_BYTES = 64 * 1_024;
/** To see that a body up to this is UTF-8, which is all that has to be done with most, takes 0.1 ms. */
const UTF8_BYTES = 512 * 1_024;

/** Reads small bodies here, a step in each turn of the event loop, and large ones in a thread apart. */
function bodyReader(id: number, claimant: Claimant): ReadBody {
  const isShort = (body: Uint8Array): boolean =>
    body.byteLength <= SMALL_BYTES || (body.byteLength <= UTF8_BYTES && isUtf8(body));
  return (received) =>
    isShort(received.body)
      ? inTurns(readBody(received), (step) => state.during(id, step))
      : largeBodies.read(received, claimant);
}

/** Its format changes, so what the site had coded is not needed. */
function sendPage(id: number, page: Page): void {
  post({ kind: 'page', id, page: { ...page, coded: undefined } }, transferable(page.body));
}

async function sendResult(id: number, input: ResultInput, claimant: Claimant): Promise<void> {
  const { page } = input;
  const result = await state.during(id, () => buildResult(input, claimant, starts.isShared()));
  const isKept = [result.body, result.plain].some((kept) => kept?.buffer === page.body.buffer);
  if (!isKept) discard(page.body);
  post({ kind: 'result', id, result }, transferable(result.body, result.packed, result.plain));
}

function fail(id: number, message: string): void {
  post({ kind: 'failed', id, message });
}

async function perform(
  message: Extract<ToCrawlThread, { kind: 'crawl' | 'build' }>,
): Promise<void> {
  const { id } = message;
  if (message.kind === 'build') {
    return sendResult(id, message.input, message.claimant);
  }
  const crawl: Running = { abort: new AbortController(), roomGranted: undefined };
  running.set(id, crawl);
  const { cookies, tellsSent } = message;
  const task: CrawlTask = {
    ...message.task,
    room: createRoom(id, crawl),
    readBody: bodyReader(id, message.task),
    ...defined({
      session: cookies && createSession(id, cookies),
      onSent: tellsSent ? () => post({ kind: 'sent', id }) : undefined,
    }),
    onTraffic: (traffic) => post({ kind: 'traffic', id, traffic }),
  };
  try {
    const page = await engine.crawl(task, crawl.abort.signal);
    const { spec } = message;
    if (needsDocument(page, task.request)) return sendPage(id, page);
    await sendResult(id, { page, request: task.request, spec }, task);
  } finally {
    running.delete(id);
  }
}

const starts = createStartQueue<Extract<ToCrawlThread, { kind: 'crawl' | 'build' }>>({
  sliceMs: START_SLICE_MS,
  async start(message) {
    const { id } = message;
    try {
      await perform(message);
    } catch (error) {
      fail(id, error instanceof Error ? error.message : '');
    }
  },
});

let isUp = false;
port.on('message', (messages: Messages<ToCrawlThread>) => {
  for (const message of messages) {
    const { id } = message;
    if (message.kind === 'abort') {
      if (starts.remove(id)) fail(id, 'aborted before it started');
      running.get(id)?.abort.abort(new Error('aborted'));
      // A crawl that waits for room has no request that the abort could end.
      running.get(id)?.roomGranted?.();
    } else if (message.kind === 'room') {
      running.get(id)?.roomGranted?.();
    } else {
      const { accountId } = message.kind === 'crawl' ? message.task : message.claimant;
      starts.add(id, accountId, message);
    }
  }
  if (isUp) starts.run();
});
// All that came while the program was loaded is read before: some of it is aborted by now.
port.once('message', () =>
  setImmediate(() => {
    isUp = true;
    starts.run();
  }),
);
setInterval(() => state.beat(), BEAT_MS);
state.beat();
