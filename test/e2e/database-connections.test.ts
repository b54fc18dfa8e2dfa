import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { openMongoGate } from '../support/mongo-gate.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';

/** The driver's monitor looks again at once only when its last look is more than 500 ms ago. */
const WAVE_MS = 1_000;
const WAVES = 4;

describe.skipIf(mongodbUri === '')('the connections to MongoDB', () => {
  test('all end in good order several times: the process connects again, and takes pushes', async () => {
    await using database = testDatabase();
    await using gate = await openMongoGate(database.uri);
    await using app = await startApp({ env: { MONGODB_URI: gate.uri } });
    await app.rest('POST', `/crawler/${NORMAL}`, { name: 'held' });
    await app.rest('POST', `/crawler/${NORMAL}/held/pause`);
    const push = () =>
      app.rest('GET', `/?token=${NORMAL}&crawler=held&url=${encodeURIComponent('http://x.test/')}`);
    // From now on the process holds a session for its pushes.
    expect((await push()).status).toBe(200);
    for (let wave = 0; wave < WAVES; wave += 1) {
      await wait(WAVE_MS);
      // Something is under way when the connections end.
      const held = gate.hold((command) => command.ping !== undefined);
      const ready = app.rest('GET', '/readyz');
      await held.reached;
      gate.endAll();
      held.release();
      await ready;
    }
    await eventually(async () => expect((await push()).status).toBe(200), {
      what: 'a push that is accepted',
    });
    await eventually(async () => expect((await app.rest('GET', '/readyz')).status).toBe(200));
  });
});
