import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { repairResponse } from '../../../src/net/repair-response.ts';

const MAX_BYTES = 65_536;

/** What the parser gets of a response that comes in these pieces. */
function repaired(pieces: Iterable<string>): string {
  const passedOn: Buffer[] = [];
  const socket = {
    push(chunk: Buffer | null): boolean {
      if (chunk !== null) passedOn.push(chunk);
      return true;
    },
  };
  repairResponse(socket as unknown as Socket, MAX_BYTES);
  for (const piece of pieces) socket.push(Buffer.from(piece));
  return Buffer.concat(passedOn).toString();
}

test.each(['\n\n', '\r\n\r\n', '\n\r\n', '\r\n\n'])(
  'the end of a head is found wherever it is cut: %j',
  (end) => {
    const text = `HTTP/1.1 103 Early Hints${end}HTTP/1.1 200 OK\nx : y${end}body`;
    for (let cut = 1; cut < text.length; cut += 1) {
      const whole = repaired([text.slice(0, cut), text.slice(cut)]);
      expect(whole).toBe('HTTP/1.1 200 -\r\nx: y\r\nconnection: close\r\n\r\nbody');
    }
    expect(repaired(text)).toContain('\r\n\r\nbody');
  },
);

test('sizes of chunks lose spaces and extensions, wherever they are cut', () => {
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  const text = `${head}4  \r\nbody\r\nA ; x="1"\r\n 2\r\n3 ; y\n\r\n0  \r\nt: 1\r\n\r\n`;
  for (let cut = 1; cut < text.length; cut += 1) {
    expect(repaired([text.slice(0, cut), text.slice(cut)])).toBe(
      'HTTP/1.1 200 -\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n' +
        '4\r\nbody\r\nA\r\n 2\r\n3 ; y\n\r\n0\r\nt: 1\r\n\r\n',
    );
  }
  expect(repaired(text)).toContain('0\r\nt: 1');
});

test('what is no size of a chunk is passed on, with all that follows', () => {
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  const tails = [
    'x\r\n4 \r\nbody',
    '-4 \r\n',
    `${' '.repeat(5_000)}4\r\n`,
    '123456789 \r\n1',
    '<p>',
  ];
  for (const tail of tails)
    expect(repaired([head, tail])).toMatch(new RegExp(`\\r\\n\\r\\n${tail}$`));
});

test.each(['identity', 'binary', 'gzip'])(
  'a transfer coding %s without chunks means nothing',
  (coding) => {
    const head = `HTTP/1.1 200 OK\r\ntransfer-encoding: ${coding}\r\ncontent-length: 4\r\n\r\n`;
    expect(repaired([head, 'body'])).toBe(
      'HTTP/1.1 200 -\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody',
    );
  },
);

test('a head of many lines that comes byte by byte takes little time', () => {
  const startedAt = process.cpuUsage();
  repaired('x\n'.repeat(MAX_BYTES / 8));
  // It took more than twice as long, on an idle machine, when all lines were searched again with each byte.
  expect(process.cpuUsage(startedAt).user / 1_000).toBeLessThan(5_000);
});
