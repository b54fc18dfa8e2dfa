import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createClientAddresses } from '../../../src/edge/client-address.ts';
import { parseProxyHeader } from '../../../src/edge/proxy-header.ts';
import type { AnyRequest } from '../../../src/http/node-http.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { startWire, type Wire } from '../../support/wire.ts';

const TRUSTED = ['127.0.0.0/8', '10.0.0.0/8'];
const V2_MARK = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** The address that the handler of a call saw. */
async function remoteSeen(wire: Wire, headers: Record<string, string> = {}): Promise<string> {
  wire.seen.calls.length = 0;
  expect((await fetch(`${wire.url}/crawler/t/name`, { headers })).status).toBe(200);
  return wire.seen.calls[0]?.remote ?? '';
}

describe('headers of a trusted proxy name the client', () => {
  test.each<[headers: Record<string, string>, client: string]>([
    [{}, '127.0.0.1'],
    [{ 'x-forwarded-for': '203.0.113.7' }, '203.0.113.7'],
    [{ 'x-forwarded-for': '203.0.113.7:4711' }, '203.0.113.7'],
    [{ 'x-forwarded-for': '2001:db8::7' }, '2001:db8::7'],
    [{ 'x-forwarded-for': '[2001:db8::7]:4711' }, '2001:db8::7'],
    // The client wrote the first address itself; the last one comes from the proxy.
    [{ 'x-forwarded-for': '198.51.100.1, 203.0.113.7' }, '203.0.113.7'],
    [{ 'x-forwarded-for': '198.51.100.1, 203.0.113.7, 10.1.2.3' }, '203.0.113.7'],
    [{ 'x-forwarded-for': '10.1.2.3, 10.1.2.4' }, '10.1.2.3'],
    [{ 'x-forwarded-for': 'unknown' }, '127.0.0.1'],
    [{ 'x-forwarded-for': '203.0.113.7, not an address, 10.1.2.3' }, '10.1.2.3'],
    [{ 'x-forwarded-for': ',,,' }, '127.0.0.1'],
    [{ forwarded: 'for=203.0.113.7;proto=https' }, '203.0.113.7'],
    [{ forwarded: 'by=10.0.0.1; for="[2001:db8::7]:4711"' }, '2001:db8::7'],
    [{ forwarded: 'for=198.51.100.1, for=203.0.113.7' }, '203.0.113.7'],
    [{ forwarded: 'for=_hidden' }, '127.0.0.1'],
    [{ forwarded: 'proto=https' }, '127.0.0.1'],
    [{ forwarded: 'for=203.0.113.7', 'x-forwarded-for': '203.0.113.7' }, '203.0.113.7'],
    // Proxies write one of the two and pass on the other: one of them comes from the client.
    [{ forwarded: 'for=203.0.113.7', 'x-forwarded-for': '198.51.100.1' }, '127.0.0.1'],
    [{ forwarded: 'for=_hidden', 'x-forwarded-for': '198.51.100.1' }, '127.0.0.1'],
    [{ forwarded: '', 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
  ])('%o', async (headers, client) => {
    await using wire = await startWire({ trustedProxies: TRUSTED });
    expect(await remoteSeen(wire, headers)).toBe(client);
  });
});

test.each([[[]], [['10.0.0.0/8']]])(
  'headers of others are ignored, with the proxies %o',
  async (trustedProxies) => {
    await using wire = await startWire({ trustedProxies });
    const forged = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' };
    expect(await remoteSeen(wire, forged)).toBe('127.0.0.1');
  },
);

test.each([[[]], [TRUSTED]])(
  'an IPv4 address is the same on a port of IPv6, with the proxies %o',
  (trusted) => {
    const socket = { remoteAddress: '::ffff:203.0.113.7' };
    const request = { socket, headers: {} } as unknown as AnyRequest;
    expect(createClientAddresses(trusted).of(request)).toBe('203.0.113.7');
  },
);

/** A header of version 2. */
function v2(command: number, family: number, address: readonly number[]): Buffer {
  const head = Buffer.from([0x20 | command, family, 0, address.length]);
  return Buffer.concat([V2_MARK, head, Buffer.from(address)]);
}

const GET = 'GET /crawler/t/name HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
const V4_ADDRESSES = [203, 0, 113, 7, 127, 0, 0, 1, 0x12, 0x34, 0, 80];

/** What a connection that begins with `bytes` gets, and the client that the handler saw. */
async function answerTo(wire: Wire, ...bytes: readonly (string | Buffer)[]) {
  wire.seen.calls.length = 0;
  const socket = connect(wire.port, '127.0.0.1').setNoDelay(true);
  let answer = '';
  socket.setEncoding('latin1').on('data', (part: string) => (answer += part));
  const closed = new Promise((resolve) => socket.on('error', () => undefined).on('close', resolve));
  for (const part of bytes) {
    socket.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await closed;
  return { status: answer.slice(0, 12), client: wire.seen.calls[0]?.remote };
}

describe('the PROXY protocol', () => {
  test.each<[title: string, header: string | Buffer, client: string]>([
    ['version 1', 'PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n', '203.0.113.7'],
    ['version 1, IPv6', 'PROXY TCP6 2001:db8::7 ::1 4711 80\r\n', '2001:db8::7'],
    ['version 1, unknown', 'PROXY UNKNOWN\r\n', '127.0.0.1'],
    ['version 2', v2(1, 0x11, V4_ADDRESSES), '203.0.113.7'],
    ['version 2 with more fields', v2(1, 0x11, [...V4_ADDRESSES, 4, 0, 1, 0]), '203.0.113.7'],
    ['version 2, of the proxy itself', v2(0, 0, []), '127.0.0.1'],
    ['no header', '', '127.0.0.1'],
  ])('of a trusted proxy names the client: %s', async (_title, header, client) => {
    await using wire = await startWire({ trustedProxies: TRUSTED });
    const answered = { status: 'HTTP/1.1 200', client };
    expect(await answerTo(wire, header, GET)).toEqual(answered);
    // The same in one piece, and in pieces of one byte.
    const whole = Buffer.concat([Buffer.from(header), Buffer.from(GET)]);
    expect(await answerTo(wire, whole)).toEqual(answered);
    const bytes = [...Buffer.from(header)].map((byte) => Buffer.from([byte]));
    expect(await answerTo(wire, ...bytes, GET)).toEqual(answered);
  });

  test.each<[title: string, header: string | Buffer]>([
    ['a name', 'PROXY TCP4 localhost 127.0.0.1 1 2\r\n'],
    ['the wrong family', 'PROXY TCP4 2001:db8::7 ::1 1 2\r\n'],
    ['an unknown family', 'PROXY UDP4 203.0.113.7 127.0.0.1 1 2\r\n'],
    ['no end', `PROXY TCP4 ${' '.repeat(200)}`],
    ['another version', Buffer.concat([V2_MARK, Buffer.from([0x11, 0x11, 0, 0])])],
    ['too few bytes of an address', v2(1, 0x11, [203, 0])],
    ['a length beyond all bounds', Buffer.concat([V2_MARK, Buffer.from([0x21, 0x11, 255, 255])])],
  ])('with %s closes the connection', async (_title, header) => {
    await using wire = await startWire({ trustedProxies: TRUSTED });
    expect(await answerTo(wire, header, GET)).toEqual({ status: '', client: undefined });
  });

  test('of others is no request', async () => {
    await using wire = await startWire();
    const header = 'PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n';
    expect(await answerTo(wire, header, GET)).toEqual({
      status: 'HTTP/1.1 400',
      client: undefined,
    });
  });

  test('comes before HTTP/2 and before TLS', async () => {
    const { cert, key } = makeCertificate();
    for (const tls of [undefined, { cert, key }]) {
      await using wire = await startWire({
        trustedProxies: TRUSTED,
        ...(tls === undefined ? {} : { tls }),
      });
      const raw = connect(wire.port, '127.0.0.1');
      raw.write(v2(1, 0x11, V4_ADDRESSES));
      const secured = { socket: raw, ca: cert, ALPNProtocols: ['h2'], servername: 'localhost' };
      const session = connectHttp2(wire.url, {
        createConnection: () => (tls === undefined ? raw : connectTls(secured)),
      });
      const status = await new Promise((resolve) => {
        session.request({ ':path': '/crawler/t/name' }).on('response', (headers) => {
          resolve(headers[':status']);
        });
      });
      expect(status).toBe(200);
      await eventually(() => expect(wire.seen.calls[0]?.remote).toBe('203.0.113.7'));
      session.destroy();
    }
  });

  test('needs no byte more than its own to be recognised', () => {
    const header = Buffer.from('PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n');
    for (let bytes = 0; bytes < header.length; bytes += 1) {
      expect(parseProxyHeader(header.subarray(0, bytes))).toEqual({ kind: 'incomplete' });
    }
    const expected = { kind: 'header', bytes: header.length, client: '203.0.113.7' };
    expect(parseProxyHeader(header)).toEqual(expected);
    expect(parseProxyHeader(Buffer.from('PRI *'))).toEqual({ kind: 'absent' });
  });
});
