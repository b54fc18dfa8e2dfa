import { defined } from './defined.ts';

/** A part of a crawl and its duration in milliseconds, such as `connect` or `first_byte`. */
export type CrawlStep = readonly [name: string, ms: number];

/** One crawl of a job. */
export interface JobTry {
  /** When it began, by the clock that people see. */
  readonly startedAt: Date;
  readonly durationMs: number;
  /** Status of the target, 0 without a response. */
  readonly originalStatus: number;
  /** Why it failed; empty when it ended well. */
  readonly failure: string;
  /** The code that the system, TLS, the HTTP parser or a proxy gave for it, such as `CERT_HAS_EXPIRED`. */
  readonly detail?: string | undefined;
  /** The rung of the crawler's ladder; undefined without a ladder. */
  readonly rung?: string | undefined;
  /** In order. They are those of the last request of a chain of redirects. */
  readonly steps: readonly CrawlStep[];
}

/** A try as it is kept: an array costs half of what an object does. */
export type KeptTry = readonly [
  startedAt: number,
  durationMs: number,
  originalStatus: number,
  failure: string,
  steps: readonly CrawlStep[],
  rung?: string | null,
  detail?: string,
];

/** The tries of a job that are kept: the latest. */
export const MAX_KEPT_TRIES = 10;

/** The tries with one more, as they are kept. */
export function addTry(kept: readonly KeptTry[], next: JobTry): KeptTry[] {
  const { startedAt, durationMs, originalStatus, failure, steps, rung, detail } = next;
  const added = [startedAt.getTime(), durationMs, originalStatus, failure, steps] as const;
  const named = rung === undefined ? added : ([...added, rung] as const);
  const whole: KeptTry = detail === undefined ? named : [...added, rung ?? null, detail];
  return [...kept.slice(1 - MAX_KEPT_TRIES), whole];
}

/** Reads kept tries. */
export function toTries(kept: readonly KeptTry[] = []): JobTry[] {
  return kept.map(([startedMs, durationMs, originalStatus, failure, steps, rung, detail]) => ({
    startedAt: new Date(startedMs),
    durationMs,
    originalStatus,
    failure,
    steps,
    ...defined({ rung: rung ?? undefined, detail }),
  }));
}

/** Kept tries as text. */
export function parseTries(text: string | undefined): readonly KeptTry[] {
  return text === undefined ? [] : (JSON.parse(text) as KeptTry[]);
}

/** For how long the latest tries have failed for this reason alone; 0 if the last one has not. */
export function failingMs(tries: readonly KeptTry[], reason: string, now: Date): number {
  const lastOther = tries.findLastIndex(([, , , failure]) => failure !== reason);
  const [startedMs] = tries[lastOther + 1] ?? [now.getTime()];
  return now.getTime() - startedMs;
}

/** Times the parts of something. */
export interface Stopwatch {
  /** Ends the part that began with the last lap, or with the stopwatch. */
  lap(name: string): void;
  /** All parts so far; those of less than a millisecond are left out. */
  steps(): CrawlStep[];
}

/** Starts a stopwatch. */
export function startStopwatch(): Stopwatch {
  const steps: CrawlStep[] = [];
  let since = performance.now();
  return {
    lap(name) {
      const now = performance.now();
      const ms = Math.round(now - since);
      if (ms > 0) steps.push([name, ms]);
      since = now;
    },
    steps: () => steps,
  };
}
