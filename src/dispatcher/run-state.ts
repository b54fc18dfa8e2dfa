import type { Clock } from '../domain/clock.ts';
import type { Lease } from '../store/store.ts';

/**
 * The states of a run, and what moves it from one to the next:
 *
 * - `acquiring`: asks the store for the crawler's lease. To `running` when it has the lease.
 * - `running`: claims jobs and deliveries. To `draining` when its task ends.
 * - `draining`: claims nothing; what is in flight may end until `drainUntilMs` and is aborted then.
 * - `over`: takes no more work, see {@link OverReason}. Every other state may move here; nothing
 *   leaves it.
 */
export type RunState =
  | { readonly phase: 'acquiring' }
  | ({ readonly phase: 'running' } & HeldLease)
  | ({ readonly phase: 'draining'; readonly drainUntilMs: number } & HeldLease)
  | { readonly phase: 'over'; readonly reason: OverReason };

/** A lease as this process has it; past `leaseUntilMs` another process may have taken it. */
interface HeldLease {
  readonly lease: Lease;
  readonly leaseUntilMs: number;
}

/** A run that dispatches. */
export type ActiveState = Extract<RunState, HeldLease>;

/**
 * - `not_acquired`: another process has the lease.
 * - `idle`: there was no work for a while. `drained`: what was in flight has ended. After these two
 *   the run gives the lease back.
 * - `lease_lost`: the lease has lapsed, or another process has it.
 * - `crawler_gone`: the crawler was removed. `aborted`: the same, reported by this process.
 * - `failed`: a call to the store failed; the lease lapses unless this process acquires it again.
 */
export type OverReason =
  | 'not_acquired'
  | 'idle'
  | 'drained'
  | 'lease_lost'
  | 'crawler_gone'
  | 'aborted'
  | 'failed';

/** Where a run is, with one call for each transition. */
export interface RunStates {
  readonly current: RunState;
  /** Whether the run may act for its crawler now. */
  hasLease(): boolean;
  /**
   * The state while the run dispatches; undefined when it is over, which a lapsed lease makes it.
   */
  active(): ActiveState | undefined;
  /** The lease is held until `untilMs`. Changes nothing when the run was aborted. */
  acquired(lease: Lease, untilMs: number): void;
  /** The lease is held until `untilMs` now. */
  renewed(untilMs: number): void;
  /** Begins to drain; later calls do not move the end. */
  drain(untilMs: number): void;
  /** The first reason stays. */
  end(reason: OverReason): void;
}

/**
 * A run that could not renew its lease ends this time before the lease does, so that its crawls have
 * been aborted when those of the next holder start.
 */
const MARGIN_MS = 1_000;

/** Makes the states of a run that is acquiring its lease. */
export function createRunStates(clock: Clock): RunStates {
  let state: RunState = { phase: 'acquiring' };

  function hasLease(): boolean {
    return 'lease' in state && clock.now().getTime() < state.leaseUntilMs - MARGIN_MS;
  }

  function end(reason: OverReason): void {
    if (state.phase !== 'over') state = { phase: 'over', reason };
  }

  return {
    get current() {
      return state;
    },
    hasLease,
    active() {
      if (!hasLease()) end('lease_lost');
      return 'lease' in state ? state : undefined;
    },
    acquired(lease, leaseUntilMs) {
      if (state.phase === 'acquiring') state = { phase: 'running', lease, leaseUntilMs };
    },
    renewed(leaseUntilMs) {
      if ('lease' in state) state = { ...state, leaseUntilMs };
    },
    drain(drainUntilMs) {
      if (state.phase === 'running') state = { ...state, phase: 'draining', drainUntilMs };
    },
    end,
  };
}

/**
 * Calls `onEnd` when the lease has ended, whatever its run waits for: those who take the crawler over
 * start its next crawls a moment later. Looks at least every `lookMs`, because the clock may be set.
 * The returned function ends the watch.
 */
export function watchLease(
  states: RunStates,
  watch: { readonly clock: Clock; readonly lookMs: number; readonly onEnd: () => void },
): () => void {
  let timer: NodeJS.Timeout | undefined;
  const check = (): void => {
    const active = states.active();
    if (active === undefined) return watch.onEnd();
    const leftMs = active.leaseUntilMs - MARGIN_MS - watch.clock.now().getTime();
    timer = setTimeout(check, Math.min(Math.max(0, leftMs), watch.lookMs));
  };
  check();
  return () => clearTimeout(timer);
}
