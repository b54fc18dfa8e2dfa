import { call, report, requestsPerSecond, startBench, TOKEN } from './bench-setup.ts';

// Measures pushes per second into a paused crawler over REST, one by one and in batches. Also
// measures what a plain node:http server with the same reply reaches with the same client in the
// same run.

const PUSHES = 20_000;
const CONNECTIONS = 64;
const BATCHES = 40;
const BATCH = 1_000;

/** What a push may say of its URL. */
const FIELDS = {
  metadata: (n: number) => ({ metadata: `{"order":${n}}` }),
  delay: () => ({ delay: 3_600 }),
  priority: (n: number) => ({ priority: n % 10 }),
  batch: () => ({ batch: 'list' }),
  max_age: () => ({ parameters: { max_age: 3_600 } }),
  unique: (n: number) => ({ unique_key: String(n) }),
};

async function batches(
  service: string,
  crawler: string,
  count: number,
  fieldsOf: (n: number) => object = () => ({}),
): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      for (let batch = next++; batch < count; batch = next++) {
        const items = Array.from({ length: BATCH }, (_, n) => ({
          url: `https://example.com/item/${n}`,
          ...fieldsOf(batch * BATCH + n),
        }));
        await call(`${service}/crawler/${TOKEN}/${crawler}/push_batch`, 'POST', { items });
      }
    }),
  );
  return (count * BATCH) / ((performance.now() - startedAt) / 1_000);
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
  const batched = await batches(bench.service, 'push', BATCHES);
  report(`pushes over REST, in batches of ${BATCH}`, batched, bare);
  for (const [field, fieldsOf] of Object.entries(FIELDS)) {
    await call(`${bench.service}/crawler/${TOKEN}`, 'POST', { name: field });
    await call(`${bench.service}/crawler/${TOKEN}/${field}/pause`, 'POST');
    const perSecond = await batches(bench.service, field, BATCHES / 4, fieldsOf);
    report(`the same with \`${field}\``, perSecond, batched, 'batches without fields');
  }
}

await main();
