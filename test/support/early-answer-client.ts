import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpClient } from '../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../src/net/network-allow.ts';
import { TLS_FIXTURE } from './tls-fixture.ts';

// A program: sends ten POSTs at once to the URL of its argument, wants only the heads of the answers, and tells their
// statuses half a second later.

const client = createHttpClient({ allow: parseNetworkAllow('127.0.0.1'), ca: TLS_FIXTURE.cert });
const answers = await Promise.all(
  Array.from({ length: 10 }, () =>
    client.request({
      url: process.argv[2] ?? '',
      method: 'POST',
      body: Buffer.alloc(20_000),
      timeoutMs: 5_000,
      maxBodyBytes: 0,
      headersOnly: true,
    }),
  ),
);
await sleep(500);
await client.close();
console.log(answers.map(({ status }) => status).join(' '));
