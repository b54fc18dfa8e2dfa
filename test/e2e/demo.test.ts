import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const demo = resolve(import.meta.dirname, '../../demo/demo.ts');
/** The demo ends itself after a minute of crawling; the rest is its start and its end. */
const LONGEST_MS = 90_000;

test('the demo crawls and delivers all its URLs within its time', {
  timeout: LONGEST_MS + 5_000,
}, async () => {
  // A demo that fails, or is killed after this time, rejects with what it has printed.
  const { stdout, stderr } = await run(process.execPath, [demo], { timeout: LONGEST_MS });
  expect(stderr).toBe('');
  expect(stdout).toContain('Webhook crawler: 300 pushed, 300 arrived at the webhook.');
  expect(stdout).toContain('Storage crawler: 300 pushed, 300 in storage.');
  // Pages that asked for less were seen to wait for their second try.
  expect(stdout).toMatch(/[1-9]\d* to retry/);
});
