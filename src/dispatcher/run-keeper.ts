import type { Clock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';
import type { CrawlerChanges, Lease, Store } from '../store/store.ts';
import type { DispatchTiming } from './dispatcher-deps.ts';
import type { OverReason } from './run-state.ts';

/** A run as the keeper knows it. */
export interface KeptRun {
  readonly lease: Lease;
  /** What the run has seen of the crawler. */
  readonly seen: Pick<CrawlerChanges, 'work' | 'settings'>;
  /** Keeps the lock of the run's task. */
  touch(): Promise<void>;
  renewed(untilMs: number): void;
  /** The run has lost its lease, or its crawler. */
  end(reason: Extract<OverReason, 'lease_lost' | 'crawler_gone'>): void;
  /** There may be work from another process; `seen` is {@link CrawlerChanges.work}. */
  work(seen: number): void;
  /** The settings or pauses have changed. */
  settings(): void;
  /** How the crawler is shared now. */
  sharing(sharing: CrawlerChanges['sharing']): void;
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
  const underWay = { renewal: false, look: false };
  let renewAtMs = 0;
  let timer: NodeJS.Timeout | undefined;

  async function begin(kind: keyof typeof underWay, now: Date): Promise<void> {
    underWay[kind] = true;
    try {
      await visit(now, kind === 'renewal' ? timing.leaseMs : undefined);
      if (kind === 'renewal') renewAtMs = now.getTime() + timing.renewMs;
    } finally {
      underWay[kind] = false;
    }
  }

  async function visit(now: Date, ttlMs?: number): Promise<void> {
    const visited = [...runs.keys()];
    const leases = visited.map(({ lease }) => lease);
    const touched = ttlMs === undefined ? [] : visited.map((run) => run.touch());
    const [changes] = await Promise.all([store.queue.visit(leases, now, ttlMs), ...touched]);
    const byLease = new Map(changes.map((each) => [leaseKey(each), each]));
    for (const run of visited) {
      if (runs.has(run)) report(run, byLease.get(leaseKey(run.lease)), now, ttlMs);
    }
  }

  function report(
    run: KeptRun,
    changes: CrawlerChanges | undefined,
    now: Date,
    ttlMs?: number,
  ): void {
    const before = runs.get(run);
    if (changes === undefined) return run.end('crawler_gone');
    runs.set(run, changes);
    if (!changes.held) run.end('lease_lost');
    else if (ttlMs !== undefined) run.renewed(now.getTime() + ttlMs);
    if (before?.settings !== changes.settings) run.settings();
    if (before?.work !== changes.work) run.work(changes.work);
    run.sharing(changes.sharing);
  }

  function tick(): void {
    const now = clock.now();
    const isDue = now.getTime() >= renewAtMs && !underWay.renewal;
    const kind = isDue ? 'renewal' : 'look';
    if (underWay[kind]) return;
    begin(kind, now).catch((error: unknown) => {
      // The next look may come before the leases end.
      logger.debug({ err: error }, 'crawlers were not looked at');
    });
  }

  return {
    keep(run) {
      runs.set(run, run.seen);
      if (timer === undefined) {
        // The only lease was taken just now.
        renewAtMs = clock.now().getTime() + timing.renewMs;
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
