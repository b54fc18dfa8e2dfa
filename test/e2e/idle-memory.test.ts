import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readMetric, startNpm } from '../support/service-process.ts';

const MIB = 1024 * 1024;

test('an idle service returns what its start has left in the heap to the system', async () => {
  await using service = await startNpm();
  await eventually(async () => {
    // A service that is asked all the time is not idle.
    await wait(3_000);
    const held = await readMetric(service, 'nodejs_heap_size_total_bytes');
    const used = await readMetric(service, 'nodejs_heap_size_used_bytes');
    expect(used).toBeGreaterThan(10 * MIB);
    expect(held - used).toBeLessThan(10 * MIB);
  });
});
