import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** How old a process's reading of the clock may be. */
const READ_EVERY_MS = 20;

/** A machine's clock that a test sets; monotonic time stays as it is. */
export interface SetClock {
  /** The environment of a process that goes by it, with all of its threads. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets it to the right time plus `byMs`; resolves when every process has noticed. */
  set(byMs: number): Promise<void>;
}

/** Makes a clock that is right; `folder` holds how wrong it is. */
export function createSetClock(folder: string): SetClock {
  const path = join(folder, 'clock');
  const program = `
    import { readFileSync } from 'node:fs';
    const Right = Date;
    let byMs = 0;
    let readAt = -Infinity;
    function now() {
      if (performance.now() - readAt >= ${READ_EVERY_MS}) {
        readAt = performance.now();
        byMs = Number(readFileSync(${JSON.stringify(path)}, 'utf8'));
      }
      return Right.now() + byMs;
    }
    globalThis.Date = class Date extends Right {
      constructor(...given) {
        if (given.length === 0) super(now());
        else super(...given);
      }
      static now() {
        return now();
      }
    };`;
  const url = `data:text/javascript;base64,${Buffer.from(program).toString('base64')}`;
  writeFileSync(path, '0');
  return {
    env: { NODE_OPTIONS: `--import=${url}` },
    async set(byMs) {
      writeFileSync(path, String(byMs));
      await wait(2 * READ_EVERY_MS);
    },
  };
}
