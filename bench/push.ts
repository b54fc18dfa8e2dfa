import { parseArgs } from 'node:util';
import { openBenchDatabase } from './bench-database.ts';
import { call, report, requestsPerSecond, startBench, startService, TOKEN } from './bench-setup.ts';

// Measures pushes per second into a paused crawler over REST, one by one and in batches. Also
// measures what a plain node:http server with the same reply reaches with the same client in the
// same run. `--against DIR` compares with another checkout instead: bursts of pushes go to both in
// turn, `--rounds N` (16) of each kind. Each has an embedded database, or one on MongoDB with
// `--store mongodb`.

const PUSHES = 20_000;
const CONNECTIONS = 64;
const BATCHES = 40;
const BATCH = 1_000;
/** Rounds before the first that counts. */
const WARM_ROUNDS = 2;

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

/** The path of a push of a URL into the crawler `push`. */
function toPath(n: number): string {
  const query = `token=${TOKEN}&crawler=push&callback=true&url=`;
  return `/?${query}${encodeURIComponent(`https://example.com/item/${n}`)}`;
}

/** Makes a crawler that crawls nothing. */
async function createPaused(service: string, name: string): Promise<void> {
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name });
  await call(`${service}/crawler/${TOKEN}/${name}/pause`, 'POST');
}

async function measure(): Promise<void> {
  await using bench = await startBench();
  await createPaused(bench.service, 'push');
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
    await createPaused(bench.service, field);
    const perSecond = await batches(bench.service, field, BATCHES / 4, fieldsOf);
    report(`the same with \`${field}\``, perSecond, batched, 'batches without fields');
  }
}

/** The median of the ratios of this checkout to another one, of each kind of push. */
async function compare(folder: string, rounds: number, store: string): Promise<void> {
  await using open = new AsyncDisposableStack();
  const start = async (of?: string) => {
    const database = store === 'mongodb' ? open.use(await openBenchDatabase()) : undefined;
    return open.use(await startService({ MONGODB_URI: database?.uri ?? '' }, of));
  };
  const own = await start();
  const other = await start(folder);
  for (const { url } of [own, other]) await createPaused(url, 'push');
  const kinds = {
    'one by one': (url: string) => requestsPerSecond(url, toPath, PUSHES / 5, CONNECTIONS),
    'in batches': (url: string) => batches(url, 'push', BATCHES),
  };
  for (const [kind, perSecond] of Object.entries(kinds)) {
    const ratios: number[] = [];
    for (let round = -WARM_ROUNDS; round < rounds; round += 1) {
      const found = new Map<string, number>();
      const order = round % 2 === 0 ? [own, other] : [other, own];
      for (const { url } of order) found.set(url, await perSecond(url));
      if (round >= 0) ratios.push((found.get(own.url) ?? 0) / (found.get(other.url) ?? 1));
    }
    const sorted = ratios.toSorted((a, b) => a - b);
    const at = (part: number): string =>
      (sorted[Math.floor(part * (sorted.length - 1))] ?? 0).toFixed(2);
    console.log(`${kind}: ${at(0.5)} times those of ${folder} (${at(0)} to ${at(1)})`);
  }
}

const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    rounds: { type: 'string', default: '16' },
    store: { type: 'string', default: 'embedded' },
  },
});
if (values.against === undefined) await measure();
else await compare(values.against, Number(values.rounds), values.store);
