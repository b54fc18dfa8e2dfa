import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { startReceiver } from '../support/receiver.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const URLS = byLength(3_000, 5_000);
/** Of the bytes that a thread allocates. What is dead and yet kept alive comes to a tenth or more. */
const MOST_PROMOTED = 0.05;
/** What keeps garbage alive has to get into the old generation itself first, which takes a while. */
const ROUNDS = byLength(3, 4);
/** Collections of a thread that tell something. */
const ENOUGH = 8;

/** The V8 flags of `npm start`. */
function startFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    scripts: { start: string };
  };
  return scripts.start.match(/--\S+/g) ?? [];
}

interface Collection {
  readonly isolate: string;
  readonly allocated: number;
  readonly promoted: number;
}

/** The collections of young generations that `--trace-gc-nvp` has printed. */
function collections(output: string): Collection[] {
  return output.split('\n').flatMap((line) => {
    const found = / gc=s /.test(line) ? /^\[\d+:(\S+)\]/.exec(line) : null;
    const bytes = (name: string) => Number(new RegExp(` ${name}=(\\d+)`).exec(line)?.[1]);
    if (found === null) return [];
    const [, isolate = ''] = found;
    return [{ isolate, allocated: bytes('allocated'), promoted: bytes('promoted') }];
  });
}

/** Of the bytes that each busy thread has allocated, how many went to the old generation. */
function promotedShares(all: readonly Collection[]): number[] {
  const threads = [...Map.groupBy(all, ({ isolate }) => isolate).values()];
  const sum = (each: readonly Collection[], key: 'allocated' | 'promoted') =>
    each.reduce((bytes, collection) => bytes + collection[key], 0);
  return threads
    .filter((each) => each.length >= ENOUGH)
    .map((each) => sum(each, 'promoted') / sum(each, 'allocated'));
}

// Results that are posted leave more behind.
test.each(byLength(['webhook'], ['storage', 'webhook']))(
  'what pages leave behind dies young: %s',
  async (mode) => {
    await using folder = await temporaryFolder();
    await using site = await startSite();
    await using receiver = await startReceiver();
    const flags = [...startFlags(), '--trace-gc-nvp'].join(' ');
    await using service = await startProcess({ DATA_DIR: folder.path }, [
      'sh',
      '-c',
      `exec "$0" ${flags} "$@"`,
    ]);
    await service.rest('POST', `/crawler/${NORMAL}`, {
      name: 'pages',
      concurrency: 20,
      ...(mode === 'webhook' ? { callback_url: receiver.url } : {}),
    });
    const crawlAll = async (round: number) => {
      for (let from = 0; from < URLS; from += 1_000) {
        const items = Array.from({ length: 1_000 }, (_, n) => ({
          url: `${site.url}/page/${round}-${from + n}`,
        }));
        await service.rest('POST', `/crawler/${NORMAL}/pages/push_batch`, { items });
      }
      await eventually(
        async () => {
          const { json } = await service.rest('GET', `/crawler/${NORMAL}/pages`);
          const { completed, deliveries_pending: pending } = json.activity;
          expect([completed, pending]).toEqual([round * URLS, 0]);
        },
        { timeoutMs: 600_000 },
      );
    };

    // V8 compiles and sizes its heaps.
    await crawlAll(1);
    const before = collections(service.output).length;
    for (let round = 2; round <= ROUNDS; round += 1) await crawlAll(round);
    const shares = promotedShares(collections(service.output).slice(before));
    expect(shares.length).toBeGreaterThan(0);
    expect(Math.max(...shares)).toBeLessThan(MOST_PROMOTED);
  },
);
