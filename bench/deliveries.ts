import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { call, startBench, TOKEN } from './bench-setup.ts';

// Measures how deliveries adapt to their receiver: POSTs per result and results per second, with
// receivers that handle one request at a time, and with one that takes everything. The last runs
// deliver up to 100 results in each POST (`deliver_batch`).

const CONCURRENCY = 20;

interface Details {
  readonly activity: { readonly completed: number; readonly deliveries_pending: number };
}

/**
 * A receiver that counts POSTs. With `serialMs` it handles one after the other, and takes that long
 * for each, even when the sender has gone.
 */
async function startReceiver(serialMs: number) {
  let posts = 0;
  let last = Promise.resolve();
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      posts += 1;
      if (serialMs === 0) {
        response.writeHead(204).end();
        return;
      }
      last = last.then(() => wait(serialMs)).then(() => void response.writeHead(204).end());
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    posts: () => posts,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

async function measure(
  bench: { readonly service: string; readonly peers: string },
  serialMs: number,
  results: number,
  together = 1,
): Promise<void> {
  await using receiver = await startReceiver(serialMs);
  const name = `serial-${serialMs}-${results}-${together}`;
  const path = `${bench.service}/crawler/${TOKEN}/${name}`;
  const settings = { name, concurrency: CONCURRENCY, callback_url: receiver.url };
  const batch = together === 1 ? {} : { deliver_batch: { max_results: together, max_ms: 1_000 } };
  await call(`${bench.service}/crawler/${TOKEN}`, 'POST', { ...settings, ...batch });
  await call(`${path}/pause`, 'POST');
  for (let from = 0; from < results; from += 1_000) {
    const count = Math.min(1_000, results - from);
    const items = Array.from({ length: count }, (_, n) => ({
      url: `${bench.peers}/page/${from + n}`,
    }));
    await call(`${path}/push_batch`, 'POST', { items });
  }
  const startedAt = performance.now();
  await call(`${path}/unpause`, 'POST');
  for (;;) {
    const { activity } = await call<Details>(path, 'GET');
    if (activity.completed === results && activity.deliveries_pending === 0) break;
    await wait(20);
  }
  const perSecond = results / ((performance.now() - startedAt) / 1_000);
  const most = serialMs === 0 ? '' : `  of ${(1_000 / serialMs).toFixed(0)} that it can take`;
  const takes = serialMs === 0 ? 'takes everything' : `one at a time, ${serialMs} ms each`;
  const who = together === 1 ? takes : `${takes}, ${together} together`;
  console.log(
    `${who.padEnd(44)} ${(receiver.posts() / results).toFixed(3)} posts a result  ${perSecond.toFixed(1).padStart(8)}/s${most}`,
  );
}

async function main(): Promise<void> {
  await using bench = await startBench({
    WEBHOOK_ACK_TIMEOUT_MS: '200',
    WEBHOOK_RETRY_SCHEDULE: Array.from({ length: 15 }, () => '1s').join(','),
  });
  await measure(bench, 0, 1_000);
  for (const [serialMs, results] of [
    [5, 1_000],
    [20, 500],
    [100, 200],
  ] as const) {
    await measure(bench, serialMs, results);
  }
  await measure(bench, 0, 10_000);
  await measure(bench, 20, 2_000, 100);
  await measure(bench, 0, 10_000, 100);
}

await main();
