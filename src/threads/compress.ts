import { Worker } from 'node:worker_threads';
import { constants } from 'node:zlib';
import { Gzip } from 'minizlib';
import type { Claimant } from '../fairness/fair-pool.ts';
import { threadEnvironment } from './thread-environment.ts';

/** A large body for `pack-thread.ts`, which has its memory until it answers. */
export interface ToPack {
  readonly id: number;
  /** Accounts, and their crawlers, take turns. */
  readonly claimant: Claimant;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly level: number;
}

/** The answer: the body again, and what it was compressed to. */
export interface Packed {
  readonly id: number;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly packed: Uint8Array<ArrayBuffer>;
}

/** A body, and what it was compressed to. */
export type Compressed = Pick<Packed, 'packed'> & { readonly body: Uint8Array };

/** Level 6 takes twice the time of level 3 for a twentieth fewer bytes of HTML. */
const LEVEL = 3;
/**
 * Compressing a body up to this takes well under a millisecond; handing it to another thread would cost
 * as much again.
 */
const SMALL_BYTES = 65_536;
/** Without large bodies for this long, the thread that compresses them ends. */
const IDLE_MS = 2_000;

/**
 * The compressor of all small bodies. To make one takes as long as to compress a short page, and the
 * garbage collector keeps each, with the page, until its next full run.
 */
let compressor = createCompressor();

function createCompressor(): Gzip {
  return new Gzip({ level: LEVEL, flush: constants.Z_FINISH });
}

/** The thread that compresses large bodies, while there are any. */
let packer: Packer | undefined;

interface Packer {
  pack(body: Uint8Array, claimant: Claimant): Promise<Compressed>;
}

/**
 * Compresses with gzip: small bodies at once, large ones in a thread of their own. What is returned
 * replaces the body, whose memory that thread may have had.
 */
export async function compress(body: Uint8Array, claimant: Claimant): Promise<Compressed> {
  if (body.byteLength <= SMALL_BYTES) return { body, packed: compressSmall(body) };
  packer ??= startPacker();
  return packer.pack(body, claimant);
}

function compressSmall({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array<ArrayBuffer> {
  compressor.reset();
  compressor.write(Buffer.from(buffer, byteOffset, byteLength));
  const packed = compressor.read();
  if (packed === null) {
    compressor = createCompressor();
    throw new Error('a body was not compressed');
  }
  // A copy of the exact length: memory that others share would be copied whole at each change of
  // threads.
  return new Uint8Array(packed);
}

/** Starts the thread. It does not keep the process alive, and ends when it has had nothing to do. */
function startPacker(): Packer {
  const worker = new Worker(new URL('./pack-thread.ts', import.meta.url), {
    env: threadEnvironment(),
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  worker.unref();
  const waiting = new Map<number, PromiseWithResolvers<Compressed>>();
  let lastId = 0;

  function end(error: Error): void {
    if (packer === self) packer = undefined;
    clearTimeout(idle);
    for (const each of waiting.values()) each.reject(error);
    waiting.clear();
  }

  const idle = setTimeout(() => {
    if (waiting.size > 0) return;
    packer = undefined;
    void worker.terminate();
  }, IDLE_MS);
  idle.unref();
  worker.on('message', (answer: Packed) => {
    waiting.get(answer.id)?.resolve(answer);
    waiting.delete(answer.id);
    idle.refresh();
  });
  worker.once('error', end);
  worker.once('exit', () => end(new Error('the thread that compresses has ended')));

  const self: Packer = {
    pack(given, { accountId, crawlerId }) {
      const { buffer } = given;
      const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === given.byteLength;
      const body = isWhole ? new Uint8Array(buffer) : new Uint8Array(given);
      lastId += 1;
      const answer = Promise.withResolvers<Compressed>();
      waiting.set(lastId, answer);
      // A claimant may be more than its names, such as a whole crawl.
      const claimant = { accountId, crawlerId };
      const message: ToPack = { id: lastId, claimant, body, level: LEVEL };
      worker.postMessage(message, [body.buffer]);
      return answer.promise;
    },
  };
  return self;
}
