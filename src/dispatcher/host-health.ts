import { defined } from '../domain/defined.ts';
import { HOUR_MS } from '../domain/durations.ts';
import type { HostTrouble, SavedHealth } from '../domain/host-state.ts';
import { LONGEST_RETRY_AFTER_MS } from '../domain/retry-after.ts';
import { type FailureReason, longestWindow } from '../domain/status.ts';

/** What a crawl tells about its host; nothing when it was aborted or did not ask the host. */
export type HostAnswer =
  | { readonly kind: 'answered' }
  | SlowAnswer
  /** The host was not reached. */
  | { readonly kind: 'away'; readonly reason: string; readonly retryAfterMs?: number | undefined }
  /** Nothing can ask the host before; it is put aside, and has not failed. */
  | { readonly kind: 'waits'; readonly reason: string; readonly untilMs: number };

/**
 * The host asks for less: 429, or 503. A 503 without `Retry-After` may also be of the page alone,
 * and counts while such answers are frequent.
 */
interface SlowAnswer {
  readonly kind: 'slow';
  readonly retryAfterMs?: number | undefined;
  readonly mayBePage?: boolean;
}

/** A host that is not reached. */
export interface HostAway {
  readonly since: Date;
  /** The last reason; empty if a process before this one knew it. */
  readonly reason: string;
  /** Since when there was no other reason. */
  readonly reasonSince: Date;
}

/** Reasons for which a host counts as not reached. */
export const AWAY: ReadonlySet<string> = new Set<FailureReason>([
  'name_not_found',
  'name_lookup_failed',
  'connection_failed',
  'connect_timeout',
  'proxy_refused',
  'timeout',
  'tls_failed',
  'robots_unreachable',
]);

/** What a host bears, as its answers have shown. */
export interface HostHealth {
  /** No crawl may start before, in milliseconds of the service time. */
  readonly notBeforeMs: number;
  /** Most crawls at once; infinite for an ordinary host. */
  readonly limit: number;
  readonly trouble: HostTrouble | undefined;
  /** Whether nothing is lost by treating it as a new host, but for how often it asked for less. */
  readonly isOrdinary: boolean;
  /** Undefined while the host is not put aside. */
  readonly away: HostAway | undefined;
  /** Crawls in a row that have not reached the host. */
  readonly failures: number;
  /** Whether the next crawl is a try of a host that is put aside. */
  readonly needsTry: boolean;
  started(nowMs: number): void;
  /** Takes in the answer to a crawl that started at `startedMs`. Returns whether its trouble has changed. */
  ended(answer: HostAnswer, startedMs: number, nowMs: number): boolean;
  /** What another process needs to continue; undefined for an ordinary host. */
  saved(): SavedHealth | undefined;
  /**
   * Ends a wait that is for no reason of the host: a proxy may be there now. Crawls that started until
   * `latestMs` begin none.
   */
  endWait(latestMs: number): void;
  /** Continues where another process was, unless this one knows of trouble itself. */
  restore(saved: SavedHealth, nowMs: number): void;
  /** Continues with that many failures of a host that is not put aside. */
  restoreFailures(count: number): void;
}

/** Whether it is not the host that is waited for, but a proxy. */
export function isWait(trouble: HostTrouble | undefined): boolean {
  return trouble?.sinceMs !== undefined;
}

/** This many crawls in a row that do not reach a host put it aside, unless another number is given. */
const AWAY_FAILURES = 3;
/** How long a host is put aside at first, and at most. Each failed try doubles it. */
const ASIDE_MS = { first: 5_000, longest: 15 * 60_000 } as const;
/** The longest for a host that takes requests and does not answer: it may do so for some of its pages alone. */
const SILENT_MS = 60_000;
/** The reason of a host that took a request and did not answer in time. */
const SILENT: FailureReason = 'timeout';
/**
 * Bounds of the interval between two starts at a host that asks for less. Answers that may be of their
 * pages alone lead to `longestOfPages` at most.
 */
const SPACING_MS = { least: 50, first: 250, longestOfPages: 5_000, longest: 60_000 } as const;
/** Each answer in time reduces the interval by this factor. */
const RECOVERY = 0.95;
/**
 * A 503 that may be of its page alone slows its host down if at least `share` of the host's latest
 * answers ask for less. Each answer weighs `weight`.
 */
const REFUSED = { share: 0.25, weight: 1 / 16 } as const;

/**
 * Makes the health of a host of which nothing is known. A host that did not answer for longer than
 * `windowMs`, or than {@link longestWindow} for one reason, is not put aside any more. Each of its URLs is
 * tried once and fails.
 */
export function createHostHealth(
  windowMs: () => number,
  {
    awayFailures = AWAY_FAILURES,
    silentMs = SILENT_MS,
  }: {
    readonly awayFailures?: number;
    /** The longest pause after a request that was taken and not answered in time; bounded by that of others. */
    readonly silentMs?: number;
  } = {},
): HostHealth {
  let notBeforeMs = 0;
  let spacingMs = 0;
  let failures = 0;
  let asideMs = 0;
  let awaySinceMs: number | undefined;
  /** The last reason for which the host was not reached, and since when there was no other. */
  let same: { readonly reason: string; readonly sinceMs: number } | undefined;
  let trouble: HostTrouble | undefined;
  /** The part of the latest answers that asked for less. It starts so that the first one counts. */
  let refused: number = REFUSED.share;
  /** Crawls that started before tell nothing new about the last change. */
  let changedMs = Number.NEGATIVE_INFINITY;
  let waitEndedMs = Number.NEGATIVE_INFINITY;
  /** What was known of the host before it waited. */
  let beforeWait: Readonly<{
    trouble: HostTrouble | undefined;
    notBeforeMs: number;
    failures: number;
  }> = { trouble: undefined, notBeforeMs: 0, failures: 0 };

  const isAside = (): boolean => failures >= awayFailures;

  /** The host was reached. Returns whether it was put aside. */
  function reached(nowMs: number): boolean {
    const wasAside = isAside();
    failures = 0;
    asideMs = 0;
    awaySinceMs = undefined;
    same = undefined;
    if (wasAside) notBeforeMs = nowMs;
    return wasAside;
  }

  function answered(startedMs: number, nowMs: number): boolean {
    const wasAside = reached(nowMs);
    refused -= refused * REFUSED.weight;
    if (spacingMs > 0 && startedMs > changedMs) {
      spacingMs *= RECOVERY;
      if (spacingMs < SPACING_MS.least) spacingMs = 0;
    }
    const changes = wasAside || (trouble?.kind === 'slow' && spacingMs === 0);
    if (changes) trouble = undefined;
    return changes;
  }

  function slow(
    { retryAfterMs, mayBePage = false }: SlowAnswer,
    startedMs: number,
    nowMs: number,
  ): boolean {
    reached(nowMs);
    refused += (1 - refused) * REFUSED.weight;
    if (mayBePage && refused < REFUSED.share) return false;
    if (startedMs <= changedMs && retryAfterMs === undefined) return false;
    const wasSlow = spacingMs > 0;
    if (startedMs > changedMs) {
      const longest = mayBePage ? SPACING_MS.longestOfPages : SPACING_MS.longest;
      const doubled = Math.max(spacingMs * 2, SPACING_MS.first);
      spacingMs = Math.max(spacingMs, Math.min(doubled, longest));
      changedMs = nowMs;
    }
    const waitMs = Math.min(Math.max(retryAfterMs ?? 0, spacingMs), LONGEST_RETRY_AFTER_MS);
    notBeforeMs = Math.max(notBeforeMs, nowMs + waitMs);
    trouble = { kind: 'slow', reason: 'asks_for_less', untilMs: notBeforeMs };
    return !wasSlow;
  }

  function waits(reason: string, untilMs: number, startedMs: number, nowMs: number): boolean {
    if (startedMs <= waitEndedMs) return false;
    if (!isWait(trouble)) beforeWait = { trouble, notBeforeMs, failures };
    failures = Math.max(failures, awayFailures);
    changedMs = nowMs;
    notBeforeMs = Math.max(notBeforeMs, untilMs);
    const sinceMs = trouble?.reason === reason ? (trouble.sinceMs ?? nowMs) : nowMs;
    trouble = { kind: 'away', reason, untilMs: notBeforeMs, sinceMs };
    return true;
  }

  function away(
    { reason, retryAfterMs = 0 }: Extract<HostAnswer, { kind: 'away' }>,
    startedMs: number,
    nowMs: number,
  ): boolean {
    // Crawls that were in flight when the host was put aside.
    if (isAside() && startedMs <= changedMs) return false;
    failures += 1;
    awaySinceMs ??= nowMs;
    if (same?.reason !== reason) same = { reason, sinceMs: nowMs };
    if (!isAside()) return false;
    const isOver =
      nowMs - awaySinceMs >= windowMs() || nowMs - same.sinceMs >= longestWindow(reason) * HOUR_MS;
    const longest = reason === SILENT ? silentMs : ASIDE_MS.longest;
    const doubled = Math.max(asideMs * 2, ASIDE_MS.first);
    asideMs = isOver ? 0 : Math.min(doubled, longest, ASIDE_MS.longest);
    changedMs = nowMs;
    notBeforeMs = nowMs + Math.max(asideMs, Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS));
    trouble = { kind: 'away', reason, untilMs: notBeforeMs };
    return true;
  }

  return {
    get notBeforeMs() {
      return notBeforeMs;
    },
    get limit() {
      return isAside() ? 1 : Number.POSITIVE_INFINITY;
    },
    get trouble() {
      return trouble;
    },
    get isOrdinary() {
      return trouble === undefined && failures === 0 && spacingMs === 0;
    },
    get away() {
      if (!isAside() || awaySinceMs === undefined) return undefined;
      const { reason = '', sinceMs = awaySinceMs } = same ?? {};
      return { since: new Date(awaySinceMs), reason, reasonSince: new Date(sinceMs) };
    },
    get failures() {
      return failures;
    },
    get needsTry() {
      return isAside() && asideMs > 0;
    },
    started(nowMs) {
      if (spacingMs > 0) notBeforeMs = Math.max(notBeforeMs, nowMs + spacingMs);
    },
    ended(answer, startedMs, nowMs) {
      if (answer.kind === 'answered') return answered(startedMs, nowMs);
      if (answer.kind === 'slow') return slow(answer, startedMs, nowMs);
      if (answer.kind === 'waits') return waits(answer.reason, answer.untilMs, startedMs, nowMs);
      return away(answer, startedMs, nowMs);
    },
    endWait(latestMs) {
      waitEndedMs = latestMs;
      if (isWait(trouble)) ({ trouble, notBeforeMs, failures } = beforeWait);
    },
    saved() {
      if (trouble === undefined) return undefined;
      return { ...trouble, failures, asideMs, spacingMs, ...defined({ awaySinceMs }) };
    },
    restoreFailures(count) {
      failures = Math.max(failures, Math.min(count, awayFailures - 1));
    },
    restore(saved, nowMs) {
      if (trouble !== undefined) return;
      const { kind, reason, untilMs, sinceMs } = saved;
      trouble = { kind, reason, untilMs, ...defined({ sinceMs }) };
      ({ failures, asideMs, spacingMs, awaySinceMs } = saved);
      notBeforeMs = Math.max(notBeforeMs, untilMs);
      changedMs = nowMs;
    },
  };
}
