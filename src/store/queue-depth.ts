/** What a queue holds. */
export interface QueueDepth {
  readonly waiting: number;
  readonly retrying: number;
  readonly running: number;
  /**
   * When the job fell due that has been due for longest. Undefined if none waits, and while the
   * crawler is paused: nothing crawls these jobs, whatever the number of processes.
   */
  readonly oldestDueAt: Date | undefined;
}

/** The queue of one crawler. */
export interface CrawlerQueueDepth extends QueueDepth {
  /** Their names. */
  readonly account: string;
  readonly crawler: string;
}

/** What all queues hold. */
export interface QueueDepths {
  readonly total: QueueDepth;
  /** The longest queues, the longest first. */
  readonly longest: readonly CrawlerQueueDepth[];
}

/** The earliest of some moments. */
export function earliest(moments: readonly (Date | undefined)[]): Date | undefined {
  const times = moments.flatMap((each) => (each === undefined ? [] : [each.getTime()]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** The moment, or `notBefore` if that is later; undefined for no moment. */
export function noSooner(moment: Date | undefined, notBefore: Date | undefined): Date | undefined {
  if (moment === undefined || notBefore === undefined) return moment;
  return moment < notBefore ? notBefore : moment;
}
