import { call, startBench, TOKEN } from './bench-setup.ts';

// The service's resident memory with nothing and with 1,000,000 URLs queued.

const MILLION = 1_000_000;
const BATCH = 1_000;

async function rssOf(service: string): Promise<number> {
  const text = await (await fetch(`${service}/metrics`)).text();
  const found = /^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1];
  return Math.round(Number(found) / 1_000_000);
}

async function main(): Promise<void> {
  await using bench = await startBench();
  const { service } = bench;
  const path = `${service}/crawler/${TOKEN}`;
  await call(path, 'POST', { name: 'memory' });
  await call(`${path}/memory/pause`, 'POST');
  console.log(`nothing queued:   ${await rssOf(service)} MB`);
  const items = Array.from({ length: BATCH }, (_, n) => ({ url: `https://example.com/item/${n}` }));
  for (let pushed = 0; pushed < MILLION; pushed += BATCH) {
    await call(`${path}/memory/push_batch`, 'POST', { items });
  }
  console.log(`1,000,000 queued: ${await rssOf(service)} MB`);
}

await main();
