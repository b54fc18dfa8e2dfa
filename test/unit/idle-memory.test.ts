import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const MIB = 1024 * 1024;

/** Bytes of V8's heap after a load that was held and dropped, while the thread does `meanwhile` for two seconds. */
async function heldAfter(meanwhile: string, flags = ['--expose-gc']): Promise<number> {
  const script = `
    import { getHeapStatistics } from 'node:v8';
    import { freeWhenIdle } from './src/idle-memory.ts';
    using freeing = freeWhenIdle(250);
    let held = [];
    for (let n = 0; n < 400_000; n++) {
      held.push({ text: 'a' + n, at: [n] });
      if (held.length > 100_000) held = held.slice(50_000);
    }
    held = [];
    const until = performance.now() + 2_000;
    ${meanwhile}
    console.log(getHeapStatistics().total_heap_size);`;
  const args = [
    ...flags,
    '--max-semi-space-size=64',
    '--input-type=module-typescript',
    '-e',
    script,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

const IDLE = 'await new Promise((resolve) => setTimeout(resolve, 2_000));';
const BUSY = `while (performance.now() < until) {
  for (const end = performance.now() + 20; performance.now() < end; );
  await new Promise((resolve) => setTimeout(resolve, 5));
}`;

test('an idle thread returns the heap that it does not use, a busy one keeps it', async () => {
  const [idle, busy, without] = await Promise.all([
    heldAfter(IDLE),
    heldAfter(BUSY),
    heldAfter(IDLE, []),
  ]);
  expect(idle).toBeLessThan(20 * MIB);
  expect(busy).toBeGreaterThan(2 * idle);
  expect(without).toBeGreaterThan(2 * idle);
});
