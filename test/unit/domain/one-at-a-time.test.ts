import { expect, test } from 'vitest';
import { oneAtATime } from '../../../src/domain/one-at-a-time.ts';

test('calls during a run share its end, and the next call begins another, also after a failure', async () => {
  const runs: PromiseWithResolvers<number>[] = [];
  const run = oneAtATime(() => {
    const own = Promise.withResolvers<number>();
    runs.push(own);
    return own.promise;
  });
  const shared = Promise.allSettled([run(), run()]);
  runs[0]?.reject(new Error('away'));
  expect((await shared).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = run();
  expect(runs).toHaveLength(2);
  runs[1]?.resolve(1);
  expect(await next).toBe(1);
});
