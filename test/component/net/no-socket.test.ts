import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { toHttpError } from '../../../src/net/http-failures.ts';

const run = promisify(execFile);

/** Uses up its file descriptors, then requests in each way; prints the failures. */
const PROGRAM = `
import { openSync } from 'node:fs';
import { createHttpClient } from './src/net/create-http-client.ts';
import { parseNetworkAllow } from './src/net/network-allow.ts';
import { createResolver } from './src/net/resolver.ts';
const codes = [];
const client = createHttpClient({
  allow: parseNetworkAllow('127.0.0.1'),
  lookup: createResolver({ servers: ['127.0.0.1:9'] }),
  onNoSocket: (code) => codes.push(code),
});
const get = (url, proxy) =>
  client.request({ url, proxy, method: 'GET', timeoutMs: 60000, maxBodyBytes: 1000 }).then(
    () => 'answered',
    (error) => error.code,
  );
const ways = (name) => Promise.all([
  get('http://127.0.0.1:9080/'),
  get('http://' + name + '/'),
  get('http://93.184.215.14/', 'http://127.0.0.1:9080'),
  get('http://93.184.215.14/', 'socks5://127.0.0.1:9080'),
]);
const before = await ways('one.test');
try { for (;;) openSync('/dev/null'); } catch {}
console.log(JSON.stringify({ before, after: await ways('two.test'), codes: [...new Set(codes)] }));
process.exit();
`;

test('a lack of file descriptors is no failure of a site, a name server or a proxy', async () => {
  const args = ['-c', 'ulimit -n 200; exec "$0" --input-type=module -e "$1"'];
  const { stdout } = await run('bash', [...args, process.execPath, PROGRAM]);
  const { before, after, codes } = JSON.parse(stdout) as Record<string, string[]>;
  const expected = ['connection_failed', 'name_lookup_failed', 'proxy_failed', 'proxy_failed'];
  expect(before).toEqual(expected);
  expect(after).toEqual(['no_socket', 'no_socket', 'no_socket', 'no_socket']);
  expect(codes).toEqual(['EMFILE']);
});

test.each([
  ['EMFILE', '192.0.2.1', 'no_socket'],
  ['ENFILE', '192.0.2.1', 'no_socket'],
  ['ENOBUFS', '192.0.2.1', 'no_socket'],
  ['EADDRNOTAVAIL', '192.0.2.1', 'no_socket'],
  // The machine has no IPv6, which no wait changes.
  ['EADDRNOTAVAIL', '2001:db8::1', 'connection_failed'],
  ['ECONNREFUSED', '192.0.2.1', 'connection_failed'],
])('%s of a connection to %s: %s', (code, address, failure) => {
  const error = Object.assign(new Error(`connect ${code}`), { code, address });
  expect(toHttpError(error).code).toBe(failure);
});
