import { createServer } from 'node:net';
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { listen, type OpenServer } from './listen.ts';

/** What the page of each response shows. */
export const SHOWN = '<p>shown</p>';

const BODY = `<!doctype html>${SHOWN}`;
const LENGTH = `content-length: ${BODY.length}`;
const CHUNK = `${BODY.length.toString(16)}\r\n${BODY}\r\n`;
const CHUNKED = 'transfer-encoding: chunked';
/** Long, and hard to compress, so that its beginning decodes without its end. */
const LONG_BODY = Buffer.from(
  `${BODY}${Array.from({ length: 20_000 }, (_, n) => ((n * 7_919) % 65_521).toString(36)).join(' ')}`,
);

function response(lines: readonly string[], body: string | Buffer = BODY): Buffer {
  const head = ['HTTP/1.1 200 OK', 'connection: close', 'content-type: text/html', ...lines];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
}

function replaced(bytes: Buffer, from: string, to: string): Buffer {
  return Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1');
}

const wide = (bytes: number): string[] => [
  LENGTH,
  ...Array.from({ length: bytes / 1_000 }, (_, n) => `x-${n}: ${'v'.repeat(990)}`),
];

function encoded(encoding: string, body: Buffer): Buffer {
  return response([`content-encoding: ${encoding}`, `content-length: ${body.length}`], body);
}

/** Responses that break rules of HTTP, or seldom occur, and that Chromium shows. */
export const ODD_RESPONSES: Readonly<Record<string, Buffer>> = {
  'headers of 17 KB': response(wide(17_000)),
  'headers of 60 KB': response(wide(60_000)),
  'a header on two lines': response([LENGTH, 'x-folded: one', '  two']),
  'a space before the colon': response([LENGTH, 'x-spaced : value']),
  'a space before the colon of its length': response([LENGTH.replace(':', ' :')]),
  'a line without a colon': response([LENGTH, 'no colon here']),
  'lines that end in LF': replaced(response([LENGTH]), '\r\n', '\n'),
  'the same length twice': response([LENGTH, LENGTH]),
  'the same length twice in one header': response([`${LENGTH}, ${BODY.length}`]),
  'a length and chunks': response(['content-length: 5', CHUNKED], `${CHUNK}0\r\n\r\n`),
  'a control character in a header': response([LENGTH, 'x-control: a\x01b']),
  'bytes that are not ASCII in a header': response([LENGTH, 'x-latin: \xe9\xff']),
  'the status line of Icecast': replaced(response([LENGTH]), 'HTTP/1.1', 'ICY'),
  'a status line without a reason': replaced(response([LENGTH]), '200 OK', '200'),
  'an unasked 100 Continue': Buffer.concat([
    Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'),
    response([LENGTH]),
  ]),
  '103 Early Hints': Buffer.concat([
    Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n'),
    response([LENGTH]),
  ]),
  'a body that is cut short': response(['content-length: 1000']),
  'chunks without an end': response([CHUNKED], CHUNK),
  'a chunk that is cut short': response([CHUNKED], CHUNK.replace(/^\w+/, 'ff')),
  'bytes after the body': response([LENGTH], `${BODY}more`),
  'bytes after a gzip body': encoded('gzip', Buffer.concat([gzipSync(BODY), Buffer.from('more')])),
  'a gzip body that is cut short': encoded('gzip', gzipSync(LONG_BODY).subarray(0, 9_000)),
  'a brotli body that is cut short': encoded(
    'br',
    brotliCompressSync(LONG_BODY).subarray(0, 9_000),
  ),
  'zstd of two frames': encoded(
    'zstd',
    Buffer.concat(['<!doctype html>', SHOWN].map((part) => zstdCompressSync(part))),
  ),
  'an empty Location': replaced(response([LENGTH, 'location: ']), '200 OK', '302 Found'),
};

/** More headers than the plain engine takes; Chromium takes up to 256 KB. */
export const HEADERS_OF_200_KB = response(wide(200_000));
/** Two lengths that differ: nobody can know which is meant. */
export const TWO_LENGTHS = response([LENGTH, 'content-length: 5']);
/** No HTTP at all. */
export const NO_HTTP = Buffer.from('SSH-2.0-OpenSSH_9.6\r\n');

/** Starts a site that answers each request, of which `answer` gets the text, with those bytes. */
export function startOddSite(answer: (request: string) => Buffer): Promise<OpenServer> {
  return listen(
    createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.once('data', (request) => void socket.end(answer(request.toString('latin1'))));
    }),
  );
}
