/** A crawler of the chaos test. */
export interface ChaosCrawler {
  readonly name: string;
  readonly delivery: 'storage' | 'webhook';
  readonly concurrency: number;
  /** The time that its pages take on average. */
  readonly pageMs: number;
  /** Whether jobs are deleted and the queue is purged during the run. */
  readonly removals: boolean;
  /** How many results a POST may have; default one. */
  readonly together?: number;
  /** Its pages are on this many hosts; default 1. */
  readonly hosts?: number;
  /** What each host bears; default everything. */
  readonly politeness?: { readonly maxPerHost: number; readonly delayMs: number };
}

/**
 * Wide ones want several processes, narrow ones show how long a URL waits for a process that is gone.
 * Pages are slow, so that slots are used although the machine has few cores.
 */
export const CHAOS_CRAWLERS: readonly ChaosCrawler[] = [
  { name: 'wide', delivery: 'storage', concurrency: 200, pageMs: 2_000, removals: false },
  { name: 'hook', delivery: 'webhook', concurrency: 50, pageMs: 1_000, removals: false },
  { name: 'narrow', delivery: 'webhook', concurrency: 2, pageMs: 100, removals: false },
  {
    name: 'bulk',
    delivery: 'webhook',
    concurrency: 30,
    pageMs: 500,
    removals: false,
    together: 20,
  },
  { name: 'removed', delivery: 'storage', concurrency: 4, pageMs: 200, removals: true },
  {
    name: 'polite',
    delivery: 'storage',
    concurrency: 30,
    pageMs: 800,
    removals: false,
    hosts: 24,
    politeness: { maxPerHost: 2, delayMs: 500 },
  },
];
