import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { call, startBench, TOKEN } from './bench-setup.ts';

// Measures what one account gets while another floods the service within its limits, in quiet and
// during each attack. It measures median times: of a push, from push to stored result (of a short
// page, and of one of 120 KB), and from push to webhook. It also measures the time between two
// probes of its endpoint, one of which is due each second. An argument runs only the attacks whose
// name holds it: `npm run bench:abuse -- backlog`.

const only = process.argv[2] ?? '';
const ROUNDS = 60;
const ADMIN = 'bench-admin-token-0123';
/** Between two calls that sample how fast the API answers. */
const SAMPLE_MS = 25;
const MIN_PROBES = 4;

interface Times {
  readonly pushMs: number;
  readonly storedMs: number;
  /** A page that is too large to be compressed at once. */
  readonly largeStoredMs: number;
  readonly deliveredMs: number;
  /** Between two probes of the victim's endpoint, of which one is due each second. */
  readonly probedMs: number;
  /** The slowest answer of the API to the victim. */
  readonly slowestApiMs: number;
}

const delivered = new Map<string, () => void>();
/** When the victim's endpoint was probed. */
const probes: number[] = [];

/** Starts a site in a process of its own. */
async function startSite(role: 'attacker' | 'victim') {
  const child = fork(new URL('./abuse-site.ts', import.meta.url), [role]);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  child.on('message', ({ rid }: { rid?: string }) => {
    if (rid === undefined) probes.push(performance.now());
    else delivered.get(rid)?.();
  });
  return { url: `http://127.0.0.1:${port}`, close: () => child.disconnect() };
}

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;

const attackerSite = await startSite('attacker');
const victimSite = await startSite('victim');
await using bench = await startBench({
  ADMIN_TOKEN: ADMIN,
  CRAWL_TIMEOUT_SECONDS: '600',
  PROBE_INTERVAL_SECONDS: '1',
});
const { service } = bench;

async function push(token: string, crawler: string, path: string): Promise<string> {
  const url = encodeURIComponent(victimSite.url + path);
  const query = `token=${token}&crawler=${crawler}&callback=true&url=${url}`;
  return (await call<{ rid: string }>(`${service}/?${query}`, 'GET')).rid;
}

async function flood(name: string, path: string, count: number, concurrency: number) {
  const crawler = `${service}/crawler/${TOKEN}/${name}`;
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name, concurrency });
  const items = Array.from({ length: count }, (_, n) => ({
    url: `${attackerSite.url}${path}?${name}-${n}`,
  }));
  await call(`${crawler}/push_batch`, 'POST', { items });
  return () => call(`${crawler}/delete`, 'POST');
}

/** Reads a crawler again and again; the returned function ends that and returns the slowest answer. */
function sampleApi(token: string): () => Promise<number> {
  let sampling = true;
  let slowest = 0;
  const samples = (async () => {
    while (sampling) {
      const startedAt = performance.now();
      await call(`${service}/crawler/${token}/stores`, 'GET');
      slowest = Math.max(slowest, performance.now() - startedAt);
      await wait(SAMPLE_MS);
    }
  })();
  return async () => {
    sampling = false;
    await samples;
    return slowest;
  };
}

/** Pushes a URL and waits until its result is stored; the times of both, in ms. */
async function store(token: string, path: string) {
  const startedAt = performance.now();
  const rid = await push(token, 'stores', path);
  const pushMs = performance.now() - startedAt;
  for (;;) {
    const reply = await fetch(`${service}/storage?token=${token}&rid=${rid}`);
    await reply.arrayBuffer();
    if (reply.ok) return { pushMs, storedMs: performance.now() - startedAt };
    await wait(1);
  }
}

async function measure(token: string): Promise<Times> {
  const endOfSamples = sampleApi(token);
  const probesBefore = probes.length;
  const pushes: number[] = [];
  const stored: number[] = [];
  const largeStored: number[] = [];
  const posted: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const short = await store(token, `/page/${round}`);
    pushes.push(short.pushMs);
    stored.push(short.storedMs);
    largeStored.push((await store(token, `/medium/${round}`)).storedMs);
    const before = performance.now();
    const hooked = await push(token, 'posts', `/page/${round}`);
    await new Promise<void>((resolve) => delivered.set(hooked, resolve));
    posted.push(performance.now() - before);
    await wait(20);
  }
  for (let waits = 0; probes.length < probesBefore + MIN_PROBES && waits < 200; waits += 1) {
    await wait(100);
  }
  const seen = probes.slice(probesBefore);
  return {
    pushMs: median(pushes),
    storedMs: median(stored),
    largeStoredMs: median(largeStored),
    deliveredMs: median(posted),
    probedMs: median(seen.slice(1).map((at, n) => at - (seen[n] ?? at))),
    slowestApiMs: await endOfSamples(),
  };
}

const attacks: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
  'pages that never end, 520 crawlers': async () => {
    const ends: (() => Promise<unknown>)[] = [];
    for (let n = 0; n < 520; n += 1) ends.push(await flood(`trap-${n}`, '/hang', 2, 1));
    return () => Promise.all(ends.map((end) => end()));
  },
  'pages that never end, 2,000 at once': async () => {
    const ends = [
      await flood('one', '/hang', 1_000, 1_000),
      await flood('two', '/hang', 1_000, 1_000),
    ];
    return () => Promise.all(ends.map((end) => end()));
  },
  '300 pages of 8 MiB': () => flood('large', '/large', 300, 300),
  '300 pages of 8 MiB in EUC-KR': () => flood('korean', '/korean', 300, 300),
  'backlog of 50,000 small pages, 200 at once': async () => {
    const end = await flood('small', '/page/0', 1_000, 200);
    for (let n = 1; n < 50; n += 1) {
      const items = Array.from({ length: 1_000 }, (_, at) => ({
        url: `${attackerSite.url}/page/${n}-${at}`,
      }));
      await call(`${service}/crawler/${TOKEN}/small/push_batch`, 'POST', { items });
    }
    return end;
  },
  'documents that take all their time': async () => {
    const query = `token=${TOKEN}&format=md&url=${encodeURIComponent(`${attackerSite.url}/deep`)}`;
    let going = true;
    const loops = Array.from({ length: 12 }, async () => {
      while (going) await fetch(`${service}/?${query}`).then((reply) => reply.arrayBuffer());
    });
    return () => {
      going = false;
      return Promise.all(loops);
    };
  },
};

const account = await fetch(`${service}/accounts`, {
  method: 'POST',
  headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
  body: JSON.stringify({ name: 'victim', email: 'victim@example.com' }),
});
const { normal_token: victim } = (await account.json()) as { normal_token: string };
await call(`${service}/crawler/${victim}`, 'POST', { name: 'stores' });
await call(`${service}/crawler/${victim}`, 'POST', {
  name: 'posts',
  callback_url: `${victimSite.url}/hook`,
});
await measure(victim);
const quiet = await measure(victim);
const columns = [
  'pushMs',
  'storedMs',
  'largeStoredMs',
  'deliveredMs',
  'probedMs',
  'slowestApiMs',
] as const;
const line = (name: string, times: Times): void => {
  const cells = columns.map((key) =>
    `${times[key].toFixed(1)} ms (${(times[key] / quiet[key]).toFixed(1)})`.padStart(20),
  );
  console.log(name.padEnd(46) + cells.join(''));
};
console.log(
  ''.padEnd(46) +
    ['push', 'stored', '120 KB stored', 'delivered', 'probed', 'slowest API']
      .map((each) => each.padStart(20))
      .join(''),
);
line('quiet', quiet);
for (const [name, start] of Object.entries(attacks)) {
  if (!name.includes(only)) continue;
  const end = await start();
  line(name, await measure(victim));
  await end();
}
attackerSite.close();
victimSite.close();
