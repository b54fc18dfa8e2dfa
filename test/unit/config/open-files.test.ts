import { expect, test } from 'vitest';
import { lowOpenFilesLimit } from '../../../src/config/open-files.ts';

test('a low limit of open files is named with what to raise, and one that is enough is not', () => {
  expect(lowOpenFilesLimit(256)).toMatchObject({
    finding: expect.stringContaining('256'),
    advice: expect.stringContaining('LimitNOFILE'),
  });
  expect(lowOpenFilesLimit(4_096)).toBeUndefined();
  expect(lowOpenFilesLimit(Number.POSITIVE_INFINITY)).toBeUndefined();
});
