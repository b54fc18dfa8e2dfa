import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { createNoise } from '../../test/support/noise.ts';
import { createCertificates } from './certificates.ts';
import { CODINGS, type Coding, createPage, DELAYS_MS, pageSizes } from './real-pages.ts';

// The hosts of `npm run bench -- --real` and their name server, in a process of their own. Each of
// `h0.DOMAIN`, `h1.DOMAIN` and so on has an address, a delay and a coding of its own, over TLS.
// Pages are coded before. Arguments: a folder for the certificates, the number of hosts, the domain.
// Sends where it is to the parent process; answers each further message with its counts.

const PAGES = 48;
/** Web servers keep an idle connection for a minute or so. */
const IDLE_MS = 65_000;
const [folder = '', hostCount = '', domain = ''] = process.argv.slice(2);

interface Host {
  readonly delayMs: number;
  readonly coding: Coding;
}

const hosts: readonly Host[] = (() => {
  const noise = createNoise(7);
  const spread = Math.log(DELAYS_MS.most / DELAYS_MS.least);
  const shares = Object.entries(CODINGS).flatMap(([coding, { share }]) =>
    Array.from({ length: share }, () => coding as Coding),
  );
  return Array.from({ length: Number(hostCount) }, () => ({
    delayMs: DELAYS_MS.least * Math.exp(spread * (noise.int(1_000) / 1_000)),
    coding: noise.pick(shares),
  }));
})();

/** Whole responses by coding and page. */
const responses = new Map<Coding, Buffer[]>(
  Object.keys(CODINGS).map((coding) => [coding as Coding, []]),
);
for (const [n, bytes] of pageSizes(PAGES).entries()) {
  const page = createPage(bytes, n);
  for (const [coding, { code }] of Object.entries(CODINGS)) {
    const body = code(page);
    const coded = coding === 'none' ? '' : `content-encoding: ${coding}\r\n`;
    const head = `HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nvary: accept-encoding\r\n${coded}content-length: ${body.length}\r\n\r\n`;
    responses.get(coding as Coding)?.push(Buffer.concat([Buffer.from(head), body]));
  }
}

const counts = { served: 0, handshakes: 0, resumed: 0, lookups: 0 };
const END_OF_HEAD = '\r\n\r\n';

function serve(socket: TLSSocket): void {
  counts.handshakes += 1;
  if (socket.isSessionReused()) counts.resumed += 1;
  socket.setTimeout(IDLE_MS, () => socket.end());
  socket.setNoDelay();
  let begun = '';
  socket.on('data', (chunk) => {
    begun += chunk.toString('latin1');
    const end = begun.indexOf(END_OF_HEAD);
    if (end === -1) return;
    const head = begun.slice(0, end);
    begun = begun.slice(end + END_OF_HEAD.length);
    answer(socket, head);
  });
  // A client may go away at any time.
  socket.on('error', () => socket.destroy());
}

function answer(socket: TLSSocket, head: string): void {
  const host = hosts[Number(/\r\nhost: *h(\d+)\./i.exec(head)?.[1])];
  const page = Number(/^GET \/page\/(\d+) /.exec(head)?.[1]);
  if (host === undefined || !Number.isInteger(page)) throw new Error(`not expected: ${head}`);
  const accepted = /\r\naccept-encoding: *([^\r]*)/i.exec(head)?.[1] ?? '';
  const coding = accepted.includes(host.coding) ? host.coding : 'none';
  const response = responses.get(coding)?.[page % PAGES];
  if (response === undefined) throw new Error('there are no pages');
  setTimeout(() => {
    counts.served += 1;
    if (socket.writable) socket.write(response);
  }, host.delayMs);
}

const TTL_SECONDS = 300;
const TYPE_A = 1;

/** The answer of the name server: an address of 127.0.0.0/8 for each host, and none of IPv6. */
function answerQuestion(question: Buffer): Buffer {
  counts.lookups += 1;
  const name: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    name.push(question.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const end = at + 5;
  const host = Number(/^h(\d+)$/.exec(name[0] ?? '')?.[1]);
  const isKnown = Number.isInteger(host);
  const hasAnswer = isKnown && type === TYPE_A;
  const reply = Buffer.from(question.subarray(0, end));
  reply.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2);
  reply.writeUInt16BE(hasAnswer ? 1 : 0, 6);
  reply.writeUInt32BE(0, 8);
  if (!hasAnswer) return reply;
  const record = Buffer.alloc(16);
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(TYPE_A, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt32BE(TTL_SECONDS, 6);
  record.writeUInt16BE(4, 10);
  record.set(
    [127, 1 + Math.floor(host / 60_000), Math.floor(host / 250) % 240, 1 + (host % 250)],
    12,
  );
  return Buffer.concat([reply, record]);
}

const { caFile, key, cert } = createCertificates(folder, domain);
const server = createServer({ key, cert, ALPNProtocols: ['http/1.1'] }, serve);
server.on('tlsClientError', () => undefined);
server.listen(0, '0.0.0.0', 4_096);
await once(server, 'listening');
const names = createSocket('udp4');
names.on('message', (question, from) =>
  names.send(answerQuestion(question), from.port, from.address),
);
names.bind(0, '127.0.0.1');
await once(names, 'listening');
const { port } = server.address() as AddressInfo;
process.send?.({ port, dns: `127.0.0.1:${names.address().port}`, caFile });
process.on('message', () => process.send?.({ ...counts }));
process.on('disconnect', () => process.exit(0));
