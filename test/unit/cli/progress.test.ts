import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { createOutput } from '../../../src/cli/output.ts';
import { createProgress, formatSeconds } from '../../../src/cli/progress.ts';
import { sparkline } from '../../../src/cli/sparkline.ts';

function terminal(isTTY: boolean) {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 60 });
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return { stream, text: () => text };
}

test('a person sees number, rate, what is left and why it waits; a file sees nothing of it', () => {
  for (const isTTY of [true, false]) {
    const screen = terminal(isTTY);
    const progress = createProgress(
      createOutput(terminal(false).stream, screen.stream, { json: false }),
      'pushed',
      () => 0.25,
    );
    progress.wait('rate_limited', 60_000);
    progress.add(2_500);
    progress.end();
    expect(progress.count).toBe(2_500);
    if (isTTY) {
      expect(screen.text()).toMatch(/0 pushed, 0\/s, 25 %, \d+s left · waiting: rate_limited/);
      // The line is gone at the end.
      expect(screen.text().endsWith('\u001b[K')).toBe(true);
    } else expect(screen.text()).toBe('');
  }
});

test('times and series are short', () => {
  expect([0, 59.6, 200, 7_500].map(formatSeconds)).toEqual(['0s', '1m 0s', '3m 20s', '2h 5m']);
  expect(sparkline([0, 1, 4, 8])).toBe('▁▂▅█');
  expect(sparkline([0, 0])).toBe('▁▁');
  expect(sparkline([])).toBe('');
});

test('columns line up, and colours do not count', async () => {
  const screen = terminal(true);
  const output = createOutput(screen.stream, screen.stream, { json: false });
  await output.table(
    ['NAME', 'STATE'],
    [
      [output.paint('green', 'a'), 'running'],
      ['long name', ''],
    ],
  );
  const plain = stripVTControlCharacters(screen.text());
  expect(plain).toBe('NAME       STATE\na          running\nlong name\n');
});
