import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { createOutput, type Output, printable } from '../../../src/cli/output.ts';
import { plainText } from '../../../src/client/message-json.ts';

const PAGE = Buffer.from('<p>one\u001b]52;c;b3duZWQ=\u0007\r\n\ttwo \u009b2J ä</p>');

async function written(
  isTTY: boolean,
  print: (output: Output) => Promise<void> = (output) => output.bytes(PAGE),
  json = false,
): Promise<string> {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const output = createOutput(Object.assign(stream, { isTTY }), stream, { json });
  await print(output);
  return Buffer.concat(chunks).toString();
}

test('a page cannot command the terminal that it is printed on, and is written elsewhere as it is', async () => {
  expect(await written(true)).toBe('<p>one␛]52;c;b3duZWQ=␇\n\ttwo \ufffd2J ä</p>');
  expect(await written(false)).toBe(PAGE.toString());
});

test('text of a page on a terminal is shown in the order in which it is written', async () => {
  const page = Buffer.from('a\u202eb\u202c \u2066c\u2069 \u200fא');
  expect(await written(true, (output) => output.bytes(page))).toBe(
    'a\ufffdb\ufffd \ufffdc\ufffd \u200fא',
  );
  expect(await written(false, (output) => output.bytes(page))).toBe(page.toString());
  expect(printable('http://a/\u202etxt.exe\u2069')).toBe('http://a/ txt.exe ');
});

test('JSON has no character that commands a terminal or reorders its text', async () => {
  const value = { text: 'a\u009b2J\u007f\u202eb\u2069\u001b ä' };
  for (const print of [
    (output: Output) => output.json(value),
    (output: Output) => output.tell(value, ''),
  ]) {
    const text = await written(true, print, true);
    expect(text).toBe('{"text":"a\\u009b2J\\u007f\\u202eb\\u2069\\u001b ä"}\n');
    expect(JSON.parse(text)).toEqual(value);
  }
});

test('an int64 of a message is printed in tables and as JSON', async () => {
  expect([5n, 0n, 2n ** 60n, { used: 5n }, [5n], 'five', undefined].map(plainText)).toEqual([
    '5',
    '0',
    '1152921504606846976',
    '{"used":5}',
    '[5]',
    'five',
    '',
  ]);
  expect(await written(false, (output) => output.json({ count: 5n, each: [{ used: 6n }] }))).toBe(
    '{"count":5,"each":[{"used":6}]}\n',
  );
});
