import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setPriority } from 'node:os';

// A site of `bench:abuse`, in a process of its own; a POST to it is a delivery, whose rid it reports
// on the parent's channel. With the argument `attacker` it yields the processor to everybody else,
// because a real one has a machine of its own.

if (process.argv[2] === 'attacker') setPriority(15);

const LARGE = randomBytes(8 * 1024 * 1024);
const KOREAN = Buffer.alloc(8 * 1024 * 1024, Buffer.of(0xb0, 0xa1));
const MEDIUM = '<p>A page of some length.</p>\n'.repeat(4_000);

const server = createServer((request, response) => {
  const path = request.url ?? '/';
  if (request.method === 'POST') {
    request.resume();
    process.send?.({ rid: request.headers.rid });
    response.writeHead(204).end();
  } else if (path.startsWith('/hang')) return;
  else if (path.startsWith('/large')) response.writeHead(200).end(LARGE);
  else if (path.startsWith('/korean')) {
    response.writeHead(200, { 'content-type': 'text/html; charset=euc-kr' }).end(KOREAN);
  } else if (path.startsWith('/medium')) {
    response.writeHead(200, { 'content-type': 'text/html' }).end(MEDIUM);
  } else if (path.startsWith('/deep')) {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<ul><li>a'.repeat(1_000));
  } else {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>A page.');
  }
}).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ port: (server.address() as AddressInfo).port });
process.on('disconnect', () => process.exit(0));
