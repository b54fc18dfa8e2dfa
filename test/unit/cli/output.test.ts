import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { createOutput } from '../../../src/cli/output.ts';

const PAGE = Buffer.from('<p>one\u001b]52;c;b3duZWQ=\u0007\r\n\ttwo \u009b2J ä</p>');

async function written(isTTY: boolean): Promise<string> {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const output = createOutput(Object.assign(stream, { isTTY }), stream, { json: false });
  await output.bytes(PAGE);
  return Buffer.concat(chunks).toString();
}

test('a page cannot command the terminal that it is printed on, and is written elsewhere as it is', async () => {
  expect(await written(true)).toBe('<p>one␛]52;c;b3duZWQ=␇\n\ttwo \ufffd2J ä</p>');
  expect(await written(false)).toBe(PAGE.toString());
});
