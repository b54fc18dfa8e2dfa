import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { startApp } from '../../support/app.ts';
import { runCommandLine } from '../../support/command-line.ts';
import { listen } from '../../support/listen.ts';

const env = { HOME: '/nonexistent' };
const diagnose = (url: string) => runCommandLine(['--url', url, '--json', 'doctor'], { env });

test('doctor without a token tells whether the service answers, and fails if not', async () => {
  const gone = await diagnose('http://127.0.0.1:1');
  expect(gone.code).toBe(1);
  expect(gone.json).toContainEqual({
    check: 'service',
    state: 'failed',
    detail: expect.stringContaining('the service does not answer at http://127.0.0.1:1: '),
  });

  await using other = await listen(createServer((_request, response) => response.end('<html>')));
  const foreign = await diagnose(`http://127.0.0.1:${other.port}`);
  expect(foreign.code).toBe(1);
  expect(foreign.stdout).toContain('is not a service of this program');

  await using app = await startApp();
  const found = await diagnose(app.url);
  expect(found.code).toBe(0);
  expect(found.json.map(({ check, state }) => [check, state])).toEqual([
    ['profile', 'missing'],
    ['service', 'ok'],
    ['token', 'missing'],
    ['admin token', 'missing'],
  ]);
});
