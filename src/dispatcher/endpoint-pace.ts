import type { EndpointAnswer } from '../domain/delivery.ts';
import { LONGEST_RETRY_AFTER_MS } from '../domain/retry-after.ts';

/**
 * Limits the posts in flight at one endpoint: a congestion control that learns from the answers.
 *
 * The states, and what moves it from one to the next:
 * - `starting`: the limit begins at one and grows by one with each quick answer, so it doubles in
 *   the time of one answer. The first answer that is slow, or that fails, ends this state.
 * - `steady`: each quick answer raises the limit by a tenth, unless many posts queue at the
 *   endpoint. A slower answer keeps the limit. If answers are slow although nothing queues (their
 *   latency is that of a single post), a trial sends a few posts above the limit, one trial at a
 *   time. An answer that takes longer than half of the acknowledgement time because of a queue
 *   lowers the limit by a tenth. A failure halves it, once for all posts in flight together.
 * - `waiting`: the endpoint failed at a limit of one, or sent `Retry-After`. No post starts for a
 *   time that doubles with each further failure. The first answer ends this state.
 */
export interface EndpointPace {
  readonly state: 'starting' | 'steady' | 'waiting';
  /** Most posts in flight, at least 1. */
  readonly limit: number;
  readonly inFlight: number;
  /** How many posts may start now. */
  room(nowMs: number): number;
  /**
   * How many posts it would take one after the other within `ms`, at its present limit and the time
   * of its recent answers; none while it waits. As many as the limit before the first answer.
   */
  takesWithin(ms: number, nowMs: number): number;
  /** When there may be room even if no post ends; undefined if only the end of a post brings it. */
  opensAt(nowMs: number): number | undefined;
  start(nowMs: number): PacedPost;
  /** Ends a post; `answer` is undefined if it was not sent. */
  end(post: PacedPost, answer: EndpointAnswer | undefined, nowMs: number): void;
}

/** A post in flight. */
export interface PacedPost {
  readonly sequence: number;
  /** Whether no other was in flight when it started. */
  readonly alone: boolean;
  /** Whether it belongs to a trial above the present limit. */
  readonly trial: boolean;
}

/** Most posts in flight at one endpoint. */
export const MAX_POSTS_PER_ENDPOINT = 256;
/** An endpoint that was sent nothing for this long starts again at a limit of at most 4. */
const IDLE_MS = 60_000;
const RESTART_LIMIT = 4;
/** A latency is flat (nothing queues) up to this factor of a single post's, plus `FLAT_MS`. */
const FLAT = 1.3;
const FLAT_MS = 2;
/** Most posts that may queue at a quick endpoint, as estimated from the latencies. */
const MAX_QUEUED = 40;
/** Weight of one answer in the latency of the recent ones. */
const SMOOTHING = 1 / 8;
/** Flat answers before a trial; four times as many after a trial that found a queue. */
const FIRST_TRIAL_AFTER = 4;
const LAST_TRIAL_AFTER = 1_024;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;

/** Makes the pace of an unknown endpoint. Moments are milliseconds of any clock. */
export function createEndpointPace(options: { readonly ackTimeoutMs: number }): EndpointPace {
  const quickMs = options.ackTimeoutMs / 4;
  const slowMs = options.ackTimeoutMs / 2;
  let growth: 'starting' | 'steady' = 'starting';
  let limit = 1;
  let inFlight = 0;
  let sequence = 0;
  /** Sequence of the last post that was in flight when the limit was last lowered. */
  let loweredAt = 0;
  /**
   * Sequence of the last post that filled at least half of the limit; such answers may raise it.
   */
  let fullAt = 0;
  /** The latency of a single post; infinite before the first answer. */
  let aloneMs = Number.POSITIVE_INFINITY;
  /** The latency of the recent posts, smoothed; undefined before the first answer. */
  let recentMs: number | undefined;
  let failuresAtFloor = 0;
  let waitsUntil = 0;
  /** When the trial began, or its last post started. */
  let trialMs = 0;
  let lastEndMs = 0;
  let flatAnswers = 0;
  let trialAfter = FIRST_TRIAL_AFTER;
  let trial = { size: 0, started: 0, flat: 0, ended: 0 };

  const whole = (): number => Math.floor(limit);

  function lower(post: PacedPost, factor: number): boolean {
    growth = 'steady';
    flatAnswers = 0;
    if (post.sequence <= loweredAt) return false;
    loweredAt = sequence;
    limit = Math.max(1, limit * factor);
    return true;
  }

  function grow(by: number): void {
    limit = Math.min(MAX_POSTS_PER_ENDPOINT, limit + by);
  }

  /**
   * The posts of a trial are spread over the time of one answer, so that none waits long even at a
   * server that handles one at a time.
   */
  const trialGapMs = (): number => aloneMs / (whole() + trial.size);

  function trialRoom(nowMs: number): number {
    if (trial.started === trial.size || whole() === MAX_POSTS_PER_ENDPOINT) return 0;
    const spread = Math.floor((nowMs - trialMs) / trialGapMs());
    return Math.min(trial.size - trial.started, spread);
  }

  function beginTrial(nowMs: number): void {
    trialMs = nowMs;
    const more = Math.min(Math.floor(whole() / 2), MAX_POSTS_PER_ENDPOINT - whole());
    const size = whole() < 4 ? 1 : more;
    trial = { size, started: 0, flat: 0, ended: 0 };
  }

  function endTrialPost(isFlat: boolean, nowMs: number): void {
    trial.ended += 1;
    if (isFlat) trial.flat += 1;
    if (trial.ended < trial.size && isFlat) return;
    if (isFlat) {
      grow(trial.flat);
      trialAfter = FIRST_TRIAL_AFTER;
      beginTrial(nowMs);
    } else {
      trial = { size: 0, started: 0, flat: 0, ended: 0 };
      trialAfter = Math.min(trialAfter * 4, LAST_TRIAL_AFTER);
      flatAnswers = 0;
    }
  }

  function learn(post: PacedPost, ms: number): void {
    recentMs = recentMs === undefined ? ms : recentMs + (ms - recentMs) * SMOOTHING;
    if (ms < aloneMs) aloneMs = ms;
    else if (post.alone) aloneMs += (ms - aloneMs) / 4;
  }

  function onAnswer(post: PacedPost, ms: number, nowMs: number): void {
    const wasFull = post.sequence <= fullAt;
    failuresAtFloor = 0;
    if (post.sequence > loweredAt) waitsUntil = 0;
    learn(post, ms);
    const isFlat = ms <= aloneMs * FLAT + FLAT_MS;
    if (post.trial && trial.size > 0) endTrialPost(isFlat, nowMs);
    else if (ms < quickMs) {
      // If posts queue, a higher limit gains nothing even though answers are quick: this machine
      // may be the one that is busy.
      if (wasFull && limit * (1 - aloneMs / Math.max(ms, 0.001)) < MAX_QUEUED)
        grow(growth === 'starting' ? 1 : Math.max(1 / limit, 0.1));
    } else if (ms > slowMs && !isFlat) {
      lower(post, 0.9);
    } else {
      growth = 'steady';
      flatAnswers = isFlat ? flatAnswers + 1 : 0;
      if (trial.size === 0 && wasFull && flatAnswers >= trialAfter) beginTrial(nowMs);
    }
  }

  function onOverload(post: PacedPost, retryAfterMs: number | undefined, nowMs: number): void {
    if (retryAfterMs !== undefined) {
      const waitMs = Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS);
      waitsUntil = Math.max(waitsUntil, nowMs + waitMs);
    }
    if (post.trial && trial.size > 0) {
      endTrialPost(false, nowMs);
      if (retryAfterMs === undefined) return;
    }
    const atFloor = whole() === 1;
    if (!lower(post, 0.5) || !atFloor) return;
    failuresAtFloor += 1;
    const waitMs = FIRST_WAIT_MS * 2 ** Math.min(failuresAtFloor - 1, 10);
    waitsUntil = Math.max(waitsUntil, nowMs + Math.min(waitMs, LONGEST_WAIT_MS));
  }

  return {
    get state() {
      return waitsUntil > 0 ? 'waiting' : growth;
    },
    get limit() {
      return whole();
    },
    get inFlight() {
      return inFlight;
    },
    room(nowMs) {
      if (nowMs < waitsUntil) return 0;
      const free = whole() - inFlight;
      return free > 0 ? free : Math.max(0, trialRoom(nowMs));
    },
    takesWithin(ms, nowMs) {
      if (nowMs < waitsUntil) return 0;
      const rounds = recentMs === undefined ? 1 : ms / Math.max(recentMs, 1);
      return Math.max(1, whole() - inFlight, Math.floor(whole() * rounds));
    },
    opensAt(nowMs) {
      if (nowMs < waitsUntil) return waitsUntil;
      return trial.started < trial.size ? trialMs + trialGapMs() : undefined;
    },
    start(nowMs) {
      if (inFlight === 0 && nowMs - lastEndMs > IDLE_MS && limit > RESTART_LIMIT) {
        limit = RESTART_LIMIT;
        growth = 'starting';
      }
      sequence += 1;
      const isTrial = inFlight >= whole() && trial.started < trial.size;
      if (isTrial) {
        trial.started += 1;
        trialMs = nowMs;
      }
      inFlight += 1;
      if (inFlight * 2 >= limit) fullAt = sequence;
      return { sequence, alone: inFlight === 1, trial: isTrial };
    },
    end(post, answer, nowMs) {
      inFlight -= 1;
      lastEndMs = nowMs;
      if (answer?.kind === 'acknowledged') onAnswer(post, answer.answerMs, nowMs);
      else if (answer?.kind === 'overloaded') onOverload(post, answer.retryAfterMs, nowMs);
      // An answer that says nothing about the load ends a trial without a result.
      else if (post.trial && trial.size > 0) endTrialPost(false, nowMs);
    },
  };
}
