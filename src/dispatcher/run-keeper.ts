import type { Clock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';
import type { CrawlerNews, Lease, Store } from '../store/store.ts';
import type { DispatchTiming } from './dispatcher-deps.ts';
import { createPeriod } from './period.ts';

/** A run as the keeper knows it. */
export interface KeptRun {
  readonly lease: Lease;
  /** What the run has seen of the crawler. */
  readonly seen: Pick<CrawlerNews, 'work' | 'settings'>;
  /** Keeps the lock of the run's task. */
  touch(): Promise<void>;
  renewed(untilMs: number): void;
  lost(): void;
  /** The crawler is gone. */
  gone(): void;
  /** There may be work from another process. */
  work(): void;
  /** The settings or pauses have changed. */
  settings(): void;
  /** How the crawler is shared now. */
  sharing(sharing: CrawlerNews['sharing']): void;
}

/**
 * Watches the crawlers of all runs of a process, however many, with one look at intervals of
 * `pollMs`, and renews their leases together. It renews them at intervals of `renewMs`, or as soon
 * as the database answers again. It does so by a timer of its own, so that a slow turn makes no
 * lease lapse. Nor does a slow look, because a renewal does not wait for it.
 */
export interface RunKeeper {
  /** Keeps a run until the returned function is called. */
  keep(run: KeptRun): () => void;
}

/** Makes a keeper; its timer runs while it keeps runs. */
export function createRunKeeper(deps: {
  readonly store: { readonly queue: Pick<Store['queue'], 'visit'> };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: Pick<DispatchTiming, 'pollMs' | 'leaseMs' | 'renewMs'>;
}): RunKeeper {
  const { store, clock, logger, timing } = deps;
  const runs = new Map<KeptRun, KeptRun['seen']>();
  const renewal = createPeriod(timing.renewMs, clock.now().getTime());
  let timer: NodeJS.Timeout | undefined;
  let isRenewing = false;
  let isLooking = false;

  async function renew(now: Date): Promise<void> {
    isRenewing = true;
    try {
      await visit(now, timing.leaseMs);
      renewal.restart(now.getTime());
    } finally {
      isRenewing = false;
    }
  }

  async function look(now: Date): Promise<void> {
    isLooking = true;
    try {
      await visit(now);
    } finally {
      isLooking = false;
    }
  }

  async function visit(now: Date, ttlMs?: number): Promise<void> {
    const visited = [...runs.keys()];
    const leases = visited.map(({ lease }) => lease);
    const touched = ttlMs === undefined ? [] : visited.map((run) => run.touch());
    const [news] = await Promise.all([store.queue.visit(leases, now, ttlMs), ...touched]);
    const byLease = new Map(news.map((each) => [leaseKey(each), each]));
    for (const run of visited) {
      if (runs.has(run)) report(run, byLease.get(leaseKey(run.lease)), now, ttlMs);
    }
  }

  function report(run: KeptRun, news: CrawlerNews | undefined, now: Date, ttlMs?: number): void {
    const before = runs.get(run);
    if (news === undefined) {
      run.gone();
      return;
    }
    runs.set(run, news);
    if (!news.held) run.lost();
    else if (ttlMs !== undefined) run.renewed(now.getTime() + ttlMs);
    if (before?.settings !== news.settings) run.settings();
    if (before?.work !== news.work) run.work();
    run.sharing(news.sharing);
  }

  function tick(): void {
    const now = clock.now();
    const isDue = renewal.isOver(now.getTime());
    const visiting = isDue && !isRenewing ? renew(now) : isLooking ? undefined : look(now);
    visiting?.catch((error: unknown) => {
      // The next look may come before the leases end.
      logger.debug({ err: error }, 'crawlers were not looked at');
    });
  }

  return {
    keep(run) {
      runs.set(run, run.seen);
      if (timer === undefined) {
        // The only lease was taken just now.
        renewal.restart(clock.now().getTime());
        timer = setInterval(tick, timing.pollMs);
      }
      return () => {
        runs.delete(run);
        if (runs.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

/** A process may lead a crawler and still have a share of it from before. */
function leaseKey({ crawlerId, epoch }: Pick<Lease, 'crawlerId' | 'epoch'>): string {
  return `${crawlerId} ${epoch}`;
}
