import { expect, test } from 'vitest';
import { appTiming } from '../../../src/config/timing.ts';

test.each([
  [20, 15],
  [60, 45],
  [5, 3],
  [2, 0],
  [0, 0],
])(
  'of %i s for a stop, %i are for crawls to end, and the rest for giving them back',
  (all, drain) => {
    const config = { probeIntervalSeconds: 60, shutdownSeconds: all };
    const { dispatch } = appTiming(config, { costOfATurn: 'sync' });
    expect(dispatch.drainMs).toBe(drain * 1_000);
  },
);
