import { call, report, requestsPerSecond, startBench, TOKEN } from './bench-setup.ts';

// Measures pushes per second into a paused crawler over REST, one by one and in batches. Also
// measures what a plain node:http server with the same reply reaches with the same client in the
// same run.

const PUSHES = 20_000;
const CONNECTIONS = 64;
const BATCHES = 40;
const BATCH = 1_000;

async function batches(service: string): Promise<number> {
  const items = Array.from({ length: BATCH }, (_, n) => ({ url: `https://example.com/item/${n}` }));
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (next++ < BATCHES) {
        await call(`${service}/crawler/${TOKEN}/push/push_batch`, 'POST', { items });
      }
    }),
  );
  return (BATCHES * BATCH) / ((performance.now() - startedAt) / 1_000);
}

async function main(): Promise<void> {
  await using bench = await startBench();
  await call(`${bench.service}/crawler/${TOKEN}`, 'POST', { name: 'push' });
  await call(`${bench.service}/crawler/${TOKEN}/push/pause`, 'POST');
  const query = `token=${TOKEN}&crawler=push&callback=true&url=`;
  const toPath = (n: number): string =>
    `/?${query}${encodeURIComponent(`https://example.com/item/${n}`)}`;
  // Both servers are warmed up before either is measured.
  await requestsPerSecond(bench.peers, toPath, PUSHES / 4, CONNECTIONS);
  await requestsPerSecond(bench.service, toPath, PUSHES / 4, CONNECTIONS);
  const bare = await requestsPerSecond(bench.peers, toPath, PUSHES, CONNECTIONS);
  const single = await requestsPerSecond(bench.service, toPath, PUSHES, CONNECTIONS);
  report('bare node:http, the same JSON', bare);
  report(`pushes over REST, one by one, ${CONNECTIONS} connections`, single, bare);
  report(`pushes over REST, in batches of ${BATCH}`, await batches(bench.service), bare);
}

await main();
