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

/** What a process sends that has nothing to do takes longer on a busy machine, and is not counted for a URL. */
function expectPerUrl({ aboveIdle, commands }: CommandFigure, most: number): void {
  expect(aboveIdle, JSON.stringify(commands)).toBeLessThanOrEqual(most);
  expect(aboveIdle).toBeGreaterThan(0);
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
    expectPerUrl(await commandsOfOneUrl(bench, byLength(12, 30)), 30);
  });

  test.runIf(isLong)('pages of 1 s at concurrency 50: one per URL at most', async () => {
    const urls = byLength(150, 500);
    expectPerUrl(await commandsPerUrl(bench, { pageMs: 1_000, concurrency: 50, urls }), 1);
  });

  test('pages of 200 ms at concurrency 50: a half per URL at most', async () => {
    const urls = byLength(500, 2_000);
    expectPerUrl(await commandsPerUrl(bench, { pageMs: 200, concurrency: 50, urls }), 0.5);
  });

  // A turn costs the same however many pages ended since the last one, and on a machine that other
  // tests keep busy they are few.
  test('a backlog of fast pages: a fifth per URL at most', async () => {
    const urls = byLength(5_000, 10_000);
    expectPerUrl(await commandsPerUrl(bench, { pageMs: 0, concurrency: 50, urls }), 0.2);
  });

  test.runIf(isLong)(
    'leased crawlers without work: 10 a second at most, however many they are',
    async () => {
      const figure = await commandsOfLeased(bench, byLength(100, 500), byLength(5, 30));
      expect(figure.perUnit, JSON.stringify(figure.commands)).toBeLessThanOrEqual(10);
    },
  );
});
