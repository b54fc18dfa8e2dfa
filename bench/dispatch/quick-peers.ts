import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pages } from '../page-text.ts';

// The site and the receiver of webhooks of `npm run bench`, in a process of their own. They share the
// processor with what is measured, so they take as little of it as they can. Answers are made
// before. Of HTTP they know only what the crawlers of the bench send: GETs without a body, and
// POSTs of a known length. Sends its port to the parent process, then when paths below `/start` are
// asked for, and ends with it.

const head = (length: number): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: ${length}\r\n\r\n`;
const PAGES = pages.map((page) => Buffer.from(head(Buffer.byteLength(page)) + page));
const ACKNOWLEDGED = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n');
const END_OF_HEAD = '\r\n\r\n';

let served = 0;

function answerGet(socket: Socket, path: string): void {
  if (path.startsWith('/start')) {
    process.send?.({ path, at: performance.timeOrigin + performance.now() });
  }
  served += 1;
  const page = PAGES[served % PAGES.length];
  if (page === undefined) throw new Error('there are no pages');
  socket.write(page);
}

function lengthOfBody(requestHead: string): number {
  const found = /\r\ncontent-length: *(\d+)/i.exec(requestHead);
  const length = Number(found?.[1]);
  if (!(length > 0)) throw new Error(`a POST without a body of known length: ${requestHead}`);
  return length;
}

function serve(socket: Socket): void {
  /** The beginning of a head whose rest has not come. */
  let begun: Buffer | undefined;
  /** Bytes of a POST's body that have not come. */
  let bodyLeft = 0;

  function take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (bodyLeft > 0) {
        const taken = Math.min(bodyLeft, chunk.length - at);
        bodyLeft -= taken;
        at += taken;
        if (bodyLeft === 0) socket.write(ACKNOWLEDGED);
        continue;
      }
      const end = chunk.indexOf(END_OF_HEAD, at);
      if (end === -1) {
        begun = chunk.subarray(at);
        return;
      }
      const requestHead = chunk.toString('latin1', at, end);
      at = end + END_OF_HEAD.length;
      if (requestHead.startsWith('POST ')) bodyLeft = lengthOfBody(requestHead);
      else answerGet(socket, requestHead.slice('GET '.length, requestHead.indexOf(' ', 4)));
    }
  }

  socket.on('data', (chunk) => {
    const whole = begun === undefined ? chunk : Buffer.concat([begun, chunk]);
    begun = undefined;
    take(whole);
  });
  // A client may go away at any time.
  socket.on('error', () => socket.destroy());
}

const server = createServer({ noDelay: true }, serve).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ ports: [(server.address() as AddressInfo).port] });
process.on('disconnect', () => process.exit(0));
