import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import {
  constants,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  createZstdCompress,
  gzipSync,
} from 'node:zlib';

/** What a hostile page works with. */
export interface HostileContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path after `/hostile/`. */
  readonly name: string;
  readonly query: URLSearchParams;
  /** Runs something later, unless the site was closed by then. */
  readonly later: (ms: number, then: () => void) => void;
}

const MEBIBYTE = Buffer.alloc(1024 * 1024, 'a');
/** What an "endless" page sends at most, should nobody hang up. */
const MOST_MEBIBYTES = 512;

const COMPRESSORS = {
  gzip: createGzip,
  deflate: createDeflate,
  'deflate-raw': createDeflateRaw,
  // The best quality, the default, takes this process longer than the limits that are tested.
  br: () => createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: createZstdCompress,
} as const;

const PAGES: Readonly<Record<string, (context: HostileContext) => void>> = {
  /** One byte every 50 ms, for as long as the client listens. */
  'slow-body'({ response, later }) {
    response.writeHead(200, { 'content-type': 'text/html' });
    const drip = (): void => {
      if (response.destroyed) return;
      response.write('x');
      later(50, drip);
    };
    drip();
  },
  /** A status line, then one header line every 50 ms. */
  'slow-headers'({ response, later }) {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\n');
    const drip = (count: number): void => {
      if (socket === null || socket.destroyed) return;
      socket.write(`x-${count}: y\r\n`);
      later(50, () => drip(count + 1));
    };
    drip(0);
  },
  /** Mebibyte after mebibyte. */
  'endless-body'({ response }) {
    response.writeHead(200, { 'content-type': 'text/html' });
    pourInto(response);
  },
  /** `?encoding=gzip|deflate|deflate-raw|br|zstd`: a small answer that decodes without end. */
  bomb({ response, query }) {
    const encoding = query.get('encoding') ?? 'gzip';
    const create = COMPRESSORS[encoding as keyof typeof COMPRESSORS];
    response.writeHead(200, {
      'content-type': 'text/html',
      'content-encoding': encoding === 'deflate-raw' ? 'deflate' : encoding,
    });
    const compressor = create();
    response.once('close', () => compressor.destroy());
    compressor.on('error', () => response.destroy());
    (compressor as unknown as Readable).pipe(response);
    pourInto(compressor);
  },
  /** A bomb within a bomb. */
  'double-bomb'({ response }) {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip, gzip' });
    const inner = createGzip();
    const outer = createGzip();
    response.once('close', () => {
      inner.destroy();
      outer.destroy();
    });
    for (const each of [inner, outer]) each.on('error', () => response.destroy());
    inner.pipe(outer).pipe(response);
    pourInto(inner);
  },
  /** Empty gzip members without end, compressed once more: little arrives, much is made of it, and nothing comes out. */
  'nested-gzip'({ response }) {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip, gzip' });
    const outer = createGzip();
    response.once('close', () => outer.destroy());
    outer.on('error', () => response.destroy());
    outer.pipe(response);
    const member = gzipSync('');
    pourInto(outer, Buffer.alloc(MEBIBYTE.length - (MEBIBYTE.length % member.length), member));
  },
  /** More encodings than anybody needs. */
  'many-encodings'({ response }) {
    response.writeHead(200, { 'content-encoding': Array(50).fill('gzip').join(', ') }).end('x');
  },
  /** Says gzip, is not. */
  'not-gzip'({ response }) {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end('<p>plain</p>');
  },
  /** Gzip that ends in the middle. */
  'cut-gzip'({ response }) {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
    const compressor = createGzip();
    const chunks: Buffer[] = [];
    compressor.on('data', (chunk: Buffer) => chunks.push(chunk));
    compressor.on('end', () => {
      const whole = Buffer.concat(chunks);
      response.end(whole.subarray(0, whole.length / 2));
    });
    compressor.end(Array.from({ length: 5_000 }, (_, line) => `line ${line}`).join('\n'));
  },
  /** `?count=N`: that many header lines of 1,000 characters. */
  'header-flood'({ response, query }) {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\n');
    for (let line = 0; line < Number(query.get('count') ?? 10_000); line += 1) {
      socket?.write(`x-flood-${line}: ${'f'.repeat(1_000)}\r\n`);
    }
    socket?.end('content-length: 2\r\n\r\nok');
  },
  /** Announces more than it sends, then closes. */
  'length-too-long': ({ response }) =>
    raw(response, 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\nshort'),
  /** Announces less than it sends. */
  'length-too-short': ({ response }) =>
    raw(response, 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfive!and a smuggled tail'),
  /** Two lengths that differ. */
  'two-lengths': ({ response }) =>
    raw(response, 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok'),
  /** Chunks whose size is no number. */
  'bad-chunks': ({ response }) =>
    raw(response, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nnope\r\n'),
  /** Not HTTP at all. */
  garbage: ({ response }) => raw(response, '\u0000\u0001 this is not HTTP\r\n\r\n'),
  /** Closed without an answer. */
  'no-answer': ({ response }) => void response.socket?.destroy(),
  /** Reset before the headers. */
  reset: ({ response }) => void response.socket?.resetAndDestroy(),
  /** Reset after a part of the body. */
  'reset-mid-body'({ response, later }) {
    response.writeHead(200, { 'content-type': 'text/html', 'content-length': 1_000_000 });
    response.write('x'.repeat(10_000), () => later(20, () => response.socket?.resetAndDestroy()));
  },
  /** One informational answer after another, never a final one. */
  'endless-100'({ response, later }) {
    const drip = (): void => {
      if (response.socket === null || response.socket.destroyed) return;
      response.socket.write('HTTP/1.1 103 Early Hints\r\n\r\n');
      later(10, drip);
    };
    drip();
  },
  /** `?depth=N`: that many nested elements. */
  'deep-html'({ response, query }) {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<div>'.repeat(Number(query.get('depth') ?? 100_000)));
  },
  /** `?to=URL`: redirects there, however private it is. */
  'private-redirect'({ response, query }) {
    response.writeHead(302, { location: query.get('to') ?? 'http://10.0.0.1/' }).end();
  },
  /** Ten cookies of 1,000 characters each, then a redirect to `/echo`. */
  'cookie-flood'({ response }) {
    const cookies = Array.from({ length: 10 }, (_, n) => `c${n}=${'v'.repeat(1_000)}; Path=/`);
    response.writeHead(302, { 'set-cookie': cookies, location: '/echo' }).end();
  },
};

/** Answers `/hostile/NAME`. What pours without end stops at 512 MiB, so that a fault in a test cannot fill a machine. */
export function hostilePage(context: HostileContext): void {
  const page = PAGES[context.name];
  if (page === undefined) context.response.writeHead(404).end();
  else page(context);
}

function raw(response: ServerResponse, text: string): void {
  response.socket?.end(text, 'latin1');
}

function pourInto(
  sink: NodeJS.WritableStream & { readonly destroyed?: boolean },
  piece = MEBIBYTE,
): void {
  let sent = 0;
  const pour = (): void => {
    while (sent < MOST_MEBIBYTES && sink.destroyed !== true) {
      sent += 1;
      if (!sink.write(piece)) {
        sink.once('drain', pour);
        return;
      }
    }
    if (sink.destroyed !== true) sink.end();
  };
  pour();
}
