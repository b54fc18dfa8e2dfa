import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpClient } from '../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../src/net/network-allow.ts';
import { TLS_FIXTURE } from './tls-fixture.ts';

// A program: sends ten POSTs at once to the URL of its first argument, of as many bytes as its second says. Half a second
// after the last head of an answer, or failure, it tells how many had one.

const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
const answers = await Promise.allSettled(
  Array.from({ length: 10 }, () =>
    client.request({
      url: process.argv[2] ?? '',
      method: 'POST',
      body: Buffer.alloc(Number(process.argv[3])),
      timeoutMs: 5_000,
      maxBodyBytes: 0,
      headersOnly: true,
    }),
  ),
);
await sleep(500);
await client.close();
process.stdout.write(`${answers.filter(({ status }) => status === 'fulfilled').length}\n`);
