import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCountedProcess } from '../support/commands/counted-process.ts';
import {
  ACKNOWLEDGE,
  COMMAND_SETTINGS,
  type CommandBench,
  type CommandFigure,
  commandsOfLeased,
  commandsOfOneUrl,
  commandsPerUrl,
  commandsWhenIdle,
} from '../support/commands/measure-commands.ts';
import { byLength, isLong } from '../support/length.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

/**
 * Expects at most `most` commands a second, without those of an idle process. Turns follow one another by time, so a
 * busy machine, on which fewer pages end, sends more for each page and no more a second.
 */
function expectPerSecond(
  { aboveIdle, units, seconds, commands }: CommandFigure,
  most: number,
): void {
  const perSecond = (aboveIdle * units) / seconds;
  expect(perSecond, JSON.stringify(commands)).toBeLessThanOrEqual(most);
  expect(perSecond).toBeGreaterThan(0);
}

describe.skipIf(mongodbUri === '')('commands to MongoDB, counted in the driver', () => {
  const open = new AsyncDisposableStack();
  let bench: CommandBench;

  beforeAll(async () => {
    const database = open.use(testDatabase());
    const site = open.use(await startSite());
    const receiver = open.use(await startReceiver({ answer: ACKNOWLEDGE }));
    const env = { MONGODB_URI: database.uri, ...COMMAND_SETTINGS };
    const service = open.use(await startCountedProcess(env));
    const idle = await commandsWhenIdle(service, byLength(5, 10));
    bench = { service, site, hook: receiver.url, idle };
  });
  afterAll(() => open.disposeAsync());

  test('one URL to an idle crawler: 30 at most', async () => {
    const { each } = await commandsOfOneUrl(bench, byLength(12, 30));
    // What the process does by time only adds to that.
    expect(Math.min(...each), each.join(' ')).toBeLessThanOrEqual(30);
    // A push, a claim, an end and a release, at least.
    expect(Math.min(...each)).toBeGreaterThan(4);
  });

  test.runIf(isLong)(
    'pages of 1 s at concurrency 50: one per page that can end at most',
    async () => {
      const urls = byLength(150, 500);
      expectPerSecond(await commandsPerUrl(bench, { pageMs: 1_000, concurrency: 50, urls }), 50);
    },
  );

  test('pages of 200 ms at concurrency 50: a half per page that can end at most', async () => {
    const urls = byLength(500, 2_000);
    expectPerSecond(await commandsPerUrl(bench, { pageMs: 200, concurrency: 50, urls }), 125);
  });

  // Some seven turns a second, more while slots are free, of some nine commands each.
  test('a backlog of fast pages: 100 a second at most, however many pages end', async () => {
    const urls = byLength(5_000, 10_000);
    expectPerSecond(await commandsPerUrl(bench, { pageMs: 0, concurrency: 50, urls }), 100);
  });

  test.runIf(isLong)(
    'leased crawlers without work: 10 a second at most, however many they are',
    async () => {
      const figure = await commandsOfLeased(bench, byLength(100, 500), byLength(5, 30));
      expect(figure.perUnit, JSON.stringify(figure.commands)).toBeLessThanOrEqual(10);
    },
  );
});
