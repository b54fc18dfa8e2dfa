import { afterEach, expect, test, vi } from 'vitest';
import { createOutageWarning } from '../../../src/dispatcher/outage-warning.ts';
import { createRecordingLogger } from '../../support/loggers.ts';

afterEach(() => void vi.useRealTimers());

test('an outage that many crawlers meet is one warning a minute', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const logger = createRecordingLogger();
  const warn = createOutageWarning(logger);
  const error = new Error('away');
  for (const crawler of ['a', 'b', 'c']) warn(error, crawler);
  vi.advanceTimersByTime(60_000);
  warn(error, 'a');
  const message = 'database unavailable, retrying';
  expect(logger.lines).toEqual([
    { level: 'warn', fields: { err: error, crawler: 'a' }, message },
    { level: 'debug', fields: { err: error, crawler: 'b' }, message },
    { level: 'debug', fields: { err: error, crawler: 'c' }, message },
    { level: 'warn', fields: { err: error, crawler: 'a' }, message },
  ]);
});
