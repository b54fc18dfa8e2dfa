import type { CookieChanges, SessionCookie } from '../domain/session-cookies.ts';
import type { CrawlTask, Page } from '../engine/engine.ts';
import type { HttpEngineDeps } from '../engine/http/http-engine.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { RefusedConnection } from '../net/failure-reports.ts';
import type { NetworkSettings } from '../net/network-settings.ts';
import type { CrawlTraffic } from '../net/proxy-traffic.ts';
import type { CrawlResult, ResultInput, ResultSpec } from './build-result.ts';

/** What a crawl thread is started with. */
export interface CrawlThreadSettings {
  /** See {@link threadState}. */
  readonly state: SharedArrayBuffer;
  readonly network: NetworkSettings;
  readonly limits: HttpEngineDeps['limits'];
  readonly identity?: HttpEngineDeps['identity'];
}

/**
 * The memory that a caller reserves for each crawl before it starts it, in bytes: what the crawl may
 * hold before it asks for more.
 */
export const BASE_BYTES = 64 * 1_024;

/** From the service to a crawl thread. */
export type ToCrawlThread =
  | {
      readonly kind: 'crawl';
      readonly id: number;
      readonly task: Omit<CrawlTask, 'session' | 'onSent' | 'onTraffic' | 'budget'>;
      /** Whether to tell when its requests are sent. */
      readonly tellsSent: boolean;
      /** The cookies of its session; undefined when it has none. */
      readonly cookies: readonly SessionCookie[] | undefined;
      readonly spec: ResultSpec;
    }
  | {
      readonly kind: 'build';
      readonly id: number;
      readonly claimant: Claimant;
      readonly input: ResultInput;
    }
  | { readonly kind: 'abort'; readonly id: number }
  /** There is room for `bytes` in all. */
  | { readonly kind: 'room'; readonly id: number; readonly bytes: number };

/** From a crawl thread to the service. */
export type FromCrawlThread =
  | { readonly kind: 'result'; readonly id: number; readonly result: CrawlResult }
  /** Its document must be read first. */
  | { readonly kind: 'page'; readonly id: number; readonly page: Page }
  /** It failed inside, or was aborted: the site sees nothing of it any more. */
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  /** A request of the crawl was sent. */
  | { readonly kind: 'sent'; readonly id: number }
  /** Bytes passed through the proxy of the crawl. */
  | { readonly kind: 'traffic'; readonly id: number; readonly traffic: CrawlTraffic }
  /** What a crawl changed in its session. */
  | { readonly kind: 'cookies'; readonly id: number; readonly changes: CookieChanges }
  /** Needs room for `bytes` in all before it reads on. */
  | { readonly kind: 'wants'; readonly id: number; readonly bytes: number }
  /** Needs no more than the base from now on. */
  | { readonly kind: 'gives'; readonly id: number }
  /** A request was refused because of its address. */
  | { readonly kind: 'refused'; readonly refused: RefusedConnection }
  /** A connection failed with `no_socket`, by that code of the system. */
  | { readonly kind: 'no_socket'; readonly code: string }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly message: string;
    };

/**
 * Three numbers that a thread shares with the service: its heartbeat, its current request, and the
 * heartbeat of the service.
 */
export interface ThreadState {
  /** Counts up while the thread's event loop runs. */
  beat(): void;
  beats(): number;
  /**
   * Runs `work` of one request, so that the service knows which request a thread was working on
   * when it stopped answering.
   */
  during<Result>(id: number, work: () => Result): Result;
  /** The request that is being worked on, 0 for none. */
  current(): number;
  /** Counts up while the event loop of the service runs. */
  beatService(): void;
  serviceBeats(): number;
}

/** Memory for one {@link ThreadState}. */
export function createStateBuffer(): SharedArrayBuffer {
  return new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT);
}

/** The state in its memory, for either side. */
export function threadState(buffer: SharedArrayBuffer): ThreadState {
  const cells = new Int32Array(buffer);
  return {
    beat: () => void Atomics.add(cells, 0, 1),
    beats: () => Atomics.load(cells, 0),
    during(id, work) {
      const before = Atomics.exchange(cells, 1, id);
      try {
        return work();
      } finally {
        Atomics.store(cells, 1, before);
      }
    },
    current: () => Atomics.load(cells, 1),
    beatService: () => void Atomics.add(cells, 2, 1),
    serviceBeats: () => Atomics.load(cells, 2),
  };
}

/**
 * The buffers of bodies that can be handed to another thread instead of copied: those of bodies
 * that own their whole memory.
 */
export function transferable(...bodies: readonly (Uint8Array | undefined)[]): ArrayBuffer[] {
  return bodies.flatMap((body) =>
    body !== undefined && body.byteLength > 0 && ownsMemory(body) ? [body.buffer] : [],
  );
}

/** The bytes, copied if they share their memory: that cannot be handed over, and is copied whole. */
export function withOwnMemory(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return ownsMemory(bytes) ? bytes : new Uint8Array(bytes);
}

function ownsMemory(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  const { buffer, byteLength } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
}
