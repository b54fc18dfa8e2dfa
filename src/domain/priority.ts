import { HOUR_MS } from './durations.ts';
import type { DueJob } from './job.ts';

/** The priority of a job that was given none. */
export const DEFAULT_PRIORITY = 5;
export const MAX_PRIORITY = 9;

/** What one step of priority is worth: a job goes before those that fell due so much earlier. */
export const PRIORITY_STEP_MS = HOUR_MS;

/**
 * The latest that jobs which are due may be in the order, beyond the present. A look that reads by
 * order stops there.
 */
export const MAX_ORDER_MS = DEFAULT_PRIORITY * PRIORITY_STEP_MS;

/**
 * The place of a job among those of its host, as a time: the least goes first. It never changes
 * while the job waits, so nothing has to be rewritten for jobs to age.
 */
export function orderMs({ dueAt, priority }: Pick<DueJob, 'dueAt' | 'priority'>): number {
  return dueAt.getTime() - (priority - DEFAULT_PRIORITY) * PRIORITY_STEP_MS;
}
