import type { OverReason } from './run-state.ts';

/** Starts and ends that are written without waiting for more. */
const URGENT_UNWRITTEN = 256;
/** The part of one write that pages fill before they are written without waiting for more. */
const URGENT_WRITE_PART = 3 / 4;
/** The longest wait for more to write after a turn that wrote much. */
const MAX_GATHERING_MS = 20;

/** What a run has to write, and what it has room for. */
export interface RunBacklog {
  /** Starts and ends of crawls, and ends of deliveries, that no turn has taken. */
  readonly unwritten: number;
  /** Of these, starts and ends of crawls. */
  readonly unwrittenCrawls: number;
  /** Bytes of the pages that the next turn writes, and how many one write takes. */
  readonly nextWriteBytes: number;
  readonly writeBytes: number;
  /** Whether slots are free, and due jobs for them wait in the store. */
  readonly isStarving: boolean;
  /** Whether a look may find jobs, or a claim deliveries, that there is room for. */
  readonly hasRoom: boolean;
}

/** What a run knows when it decides whether to take a turn. */
export interface TurnView extends RunBacklog {
  readonly nowMs: number;
  /** When the next turn is due. */
  readonly nextTurnMs: number;
  readonly isDraining: boolean;
  /** Whether a turn has failed, so that it is unknown what it has written. */
  readonly isUnsure: boolean;
  /** Whether the turn looks for what nobody has notified the run of. */
  readonly polls: boolean;
}

/** Whether a turn has something to write, to claim or to look for. */
export function hasTurnWork({ unwritten, hasRoom }: RunBacklog): boolean {
  return unwritten > 0 || hasRoom;
}

/** Whether to take a turn now. A turn comes before its time when slots are free or much is unwritten. */
export function takesTurn(view: TurnView): boolean {
  if (!view.polls && !hasTurnWork(view)) return false;
  if (view.nowMs >= view.nextTurnMs) return true;
  return !view.isUnsure && (view.isDraining || isUrgent(view));
}

function isUrgent(backlog: RunBacklog): boolean {
  const { isStarving, unwrittenCrawls, nextWriteBytes, writeBytes } = backlog;
  if (isStarving || unwrittenCrawls >= URGENT_UNWRITTEN) return true;
  return nextWriteBytes >= writeBytes * URGENT_WRITE_PART;
}

/**
 * The delay from one turn to the next, in ms: at least `leastMs`, and one for each start and end
 * that this turn writes. So a busy crawler writes more at a time and one with little to write
 * hardly waits.
 */
export function gatheringMs({ unwritten }: RunBacklog, leastMs: number): number {
  return Math.max(leastMs, Math.min(unwritten, MAX_GATHERING_MS));
}

/** What a run knows after a turn, or instead of one. */
export interface RestView {
  readonly isDraining: boolean;
  readonly isUnsure: boolean;
  readonly hasLease: boolean;
  /** Whether crawls or deliveries are in flight or unwritten. */
  readonly isBusy: boolean;
  /** Whether jobs, deliveries or helpers wait for this run. */
  readonly isWaitedFor: boolean;
  /** Whether work was reported since the turn began. */
  readonly isNotified: boolean;
  /** Whether the run has been without work for as long as it may keep its crawler. */
  readonly isIdleOver: boolean;
}

/**
 * What comes next: `active` has or awaits work, `waiting` has none and waits for some, and the other
 * values end the run. What was read ahead does not keep a run that drains or is unsure.
 */
export function nextPhase(view: RestView): 'active' | 'waiting' | OverReason {
  const mayStart = !view.isDraining && !view.isUnsure;
  if (view.isBusy || (mayStart && view.isWaitedFor)) return 'active';
  if (mayStart && (view.isNotified || !view.isIdleOver)) return 'waiting';
  if (!view.hasLease) return 'lease_lost';
  return mayStart ? 'idle' : 'drained';
}
