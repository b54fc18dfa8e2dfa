import { expect, test } from 'vitest';
import { threadEnvironment } from '../../../src/threads/thread-environment.ts';

test('a thread is given the folder of compiled code, and nothing else of the environment', () => {
  const { NODE_COMPILE_CACHE: folder } = process.env;
  expect(folder).toBeDefined();
  expect(threadEnvironment()).toEqual({ NODE_COMPILE_CACHE: folder });
});
