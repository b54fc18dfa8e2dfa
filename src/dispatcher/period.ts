/** A length of time since a moment. Moments are milliseconds of any clock. */
export interface Period {
  /** Whether the length has passed since the start or the last `restart`. */
  isOver(nowMs: number): boolean;
  restart(nowMs: number): void;
}

/** Makes a period that starts at `startMs`. */
export function createPeriod(lengthMs: number, startMs: number): Period {
  let endsAtMs = startMs + lengthMs;
  return {
    isOver: (nowMs) => nowMs >= endsAtMs,
    restart(nowMs) {
      endsAtMs = nowMs + lengthMs;
    },
  };
}
