import type { Output } from './output.ts';

/** How often the line of progress changes. */
const REDRAW_MS = 200;

/** The progress of a long command, for a person who watches. */
export interface Progress {
  /** How many there were so far. */
  readonly count: number;
  add(n: number): void;
  /** Says why it stands still. */
  wait(reason: string, ms: number): void;
  /** Removes the line. */
  end(): void;
}

/** Shows number, rate and the time that is left, where `share` (0 to 1) is known. */
export function createProgress(
  output: Pick<Output, 'progress' | 'note'>,
  what: string,
  share: () => number | undefined = () => undefined,
): Progress {
  const startedAt = performance.now();
  let drawnAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  let waiting = '';
  let waitingUntil = 0;

  function draw(): void {
    const now = performance.now();
    if (now - drawnAt < REDRAW_MS) return;
    drawnAt = now;
    const seconds = (now - startedAt) / 1_000;
    const rate = count / Math.max(seconds, 0.001);
    const done = share();
    const left =
      done === undefined || done === 0
        ? ''
        : `, ${(100 * done).toFixed(0)} %, ${formatSeconds((seconds * (1 - done)) / done)} left`;
    const wait = now < waitingUntil ? ` · waiting: ${waiting}` : '';
    output.progress(`${count.toLocaleString('en')} ${what}, ${rate.toFixed(0)}/s${left}${wait}`);
  }

  return {
    get count() {
      return count;
    },
    add(n) {
      count += n;
      draw();
    },
    wait(reason, ms) {
      waiting = reason;
      waitingUntil = performance.now() + ms;
      draw();
    },
    end: () => output.progress(''),
  };
}

/** A time for a person: `42s`, `3m 20s`, `2h 5m`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3_600)}h ${Math.floor((whole % 3_600) / 60)}m`;
}
