import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { createTimeServer, moveAhead } from '../../../src/store/mongo/agreed-time.ts';
import { openServiceTime } from '../../../src/store/mongo/service-time.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Far more than calls of the database take, and far less than the clock is set by. */
const SMALL = HOUR / 10;

describe.skipIf(mongodbUri === '')('the service time of processes on one MongoDB', () => {
  test('is the same for all of them, and advances, however the clock of the server is set', async () => {
    await using database = testDatabase();
    await using client = await new MongoClient(database.uri).connect();
    const real = createTimeServer(client.db());
    let byMs = 0;
    const server = {
      ...real,
      clock: async () => new Date((await real.clock()).getTime() + byMs),
    };
    const open = (name: string) => openServiceTime(server, name, silentLogger);
    // They begin at once, and find nothing agreed on.
    const processes = await Promise.all(['a', 'b', 'c', 'd'].map(open));
    const startedAt = performance.now();
    const from = processes[0]?.now().getTime() ?? 0;
    for (const jump of [-HOUR, HOUR, -DAY, DAY]) {
      byMs = jump;
      await Promise.all(processes.map((each) => each.check()));
      const passedMs = performance.now() - startedAt;
      for (const each of processes) {
        expect(Math.abs(each.now().getTime() - from - passedMs)).toBeLessThan(SMALL);
        expect(Math.abs(each.now().getTime() - each.aheadMs - Date.now() - jump)).toBeLessThan(
          SMALL,
        );
      }
    }
    await moveAhead(client.db(), 2 * DAY);
    const later = await open('e');
    expect(later.aheadMs).toBe(2 * DAY);
    for (const each of [...processes, later]) each.close();
  });
});
