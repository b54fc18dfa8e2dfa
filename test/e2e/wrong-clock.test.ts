import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { openChaosSite } from '../support/chaos/chaos-site.ts';
import { eventually } from '../support/eventually.ts';
import { byLength, isLong } from '../support/length.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { NORMAL } from '../support/tokens.ts';

/** The environment of a process whose machine's clock is wrong by so much. */
function wrongClock(byMs: number): Readonly<Record<string, string>> {
  const program = `
    const Right = Date;
    globalThis.Date = class Date extends Right {
      constructor(...given) {
        if (given.length === 0) super(Right.now() + ${byMs});
        else super(...given);
      }
      static now() {
        return Right.now() + ${byMs};
      }
    };`;
  const url = `data:text/javascript;base64,${Buffer.from(program).toString('base64')}`;
  return { NODE_OPTIONS: `--import=${url}` };
}

const WRONG: readonly (readonly [string, number])[] = byLength(
  [['ahead', 600_000]],
  [
    ['ahead', 600_000],
    ['behind', -600_000],
  ],
);

describe.skipIf(mongodbUri === '')('a machine whose clock is wrong', () => {
  test.each(WRONG)(
    'by ten minutes, %s, works with others as if it were right',
    async (_way, byMs) => {
      await using database = testDatabase();
      await using site = await openChaosSite();
      const env = { MONGODB_URI: database.uri };
      await using wrong = await startProcess({ ...env, ...wrongClock(byMs) });
      expect(wrong.output).toContain("the machine's clock is wrong");
      await using right = await startProcess(env);
      const path = `/crawler/${NORMAL}`;
      await wrong.rest('POST', path, { name: 'slow', concurrency: 2 });
      const push = (from: number, count: number, delayMs: number) =>
        wrong.rest('POST', `${path}/slow/push_batch`, {
          items: Array.from({ length: count }, (_, n) => ({
            url: site.page('slow', from + n, delayMs, 0),
          })),
        });
      const completed = async () =>
        (await right.rest('GET', `${path}/slow`)).json.activity.completed as number;
      // Longer than locks and leases live, so that somebody would have taken them.
      expect((await push(0, 14, 3_500)).status).toBe(200);
      const processes = async (service: ServiceProcess) =>
        (await service.rest('GET', `${path}/slow`)).json.processes as readonly object[];
      await eventually(async () => expect(await processes(right)).toHaveLength(1));
      expect(await processes(wrong)).toEqual(await processes(right));
      await eventually(async () => expect(await completed()).toBe(14));
      expect(site.seen('slow')).toMatchObject({ most: 2, again: 0 });
      // It dies at work, and the other takes over when its lease is over, neither at once nor in ten minutes.
      expect((await push(14, 4, 1_000)).status).toBe(200);
      await wrong.kill9();
      await eventually(async () => expect(await completed()).toBe(18));
      expect(site.seen('slow').most).toBe(2);
    },
  );
});

const HOUR = 3_600_000;
/** Each process has checked the clock once in this time, and locks and leases have lapsed. */
const CHECKED_MS = 40_000;

describe.skipIf(mongodbUri === '' || !isLong)("a database server's clock", () => {
  test.each([
    ['ahead', HOUR],
    ['back', -24 * HOUR],
  ])('that is set %s takes no crawler from its process, and stops none', async (_way, byMs) => {
    await using database = testDatabase();
    await using folder = await temporaryFolder();
    await using site = await openChaosSite();
    const file = join(folder.path, 'clock');
    writeFileSync(file, '0');
    const preload = new URL('../support/set-server-clock.mjs', import.meta.url).href;
    const env = {
      MONGODB_URI: database.uri,
      SERVER_CLOCK: file,
      NODE_OPTIONS: `--import=${preload}`,
    };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    const path = `/crawler/${NORMAL}`;
    await first.rest('POST', path, { name: 'slow', concurrency: 2 });
    const details = async (service: ServiceProcess) =>
      (await service.rest('GET', `${path}/slow`)).json;
    const items = Array.from({ length: 30 }, (_, n) => ({
      url: site.page('slow', n, 3_000, 0),
    }));
    expect((await first.rest('POST', `${path}/slow/push_batch`, { items })).status).toBe(200);
    await eventually(async () => expect((await details(second)).processes).toHaveLength(1));
    const { processes } = await details(second);
    writeFileSync(file, String(byMs));
    await wait(CHECKED_MS);
    for (const each of [first, second]) {
      expect((await details(each)).processes).toEqual(processes);
      expect(each.output).toContain("the machine's clock is wrong");
    }
    await eventually(async () =>
      expect((await details(second)).activity.completed).toBe(items.length),
    );
    expect(site.seen('slow')).toMatchObject({ most: 2, again: 0 });
  });
});
