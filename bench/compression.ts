import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { decodeWhole } from '../src/net/decode-whole.ts';
import { writeMarkedSection } from './marked-section.ts';
import { createPage } from './real/real-pages.ts';

// Measures what codings cost for pages of 10, 100 and 1,000 KB, in bytes and in processor time of one
// thread, and what decoding them costs. `--page FILE` takes a page that was saved, cut or repeated to
// these lengths, in place of one that is made.

const { values } = parseArgs({
  options: { page: { type: 'string' }, write: { type: 'boolean', default: false } },
});
const SIZES = [10_000, 100_000, 1_000_000];
const zstd = (page: Buffer, level: number): Buffer =>
  zstdCompressSync(page, { params: { [constants.ZSTD_c_compressionLevel]: level } });
const CODERS: Readonly<Record<string, (page: Buffer) => Buffer>> = {
  'gzip 1, for deliveries': (page) => gzipSync(page, { level: 1 }),
  'gzip 3, before': (page) => gzipSync(page, { level: 3 }),
  'gzip 6': (page) => gzipSync(page, { level: 6 }),
  'zstd 1, for storage': (page) => zstd(page, 1),
  'zstd 3': (page) => zstd(page, 3),
  'br 5': (page) => brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
};

/** The least of some rounds: what else the machine does only adds. */
function milliseconds(work: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 25; round += 1) {
    const before = process.cpuUsage();
    for (let n = 0; n < 4; n += 1) work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 4_000);
  }
  return least;
}

function pageOf(bytes: number): Buffer {
  if (values.page === undefined) return createPage(bytes, 1).subarray(0, bytes);
  const page = readFileSync(values.page);
  return Buffer.concat(Array.from({ length: Math.ceil(bytes / page.length) }, () => page)).subarray(
    0,
    bytes,
  );
}

const pages = SIZES.map(pageOf);
const rows = Object.entries(CODERS).map(([name, code]) => {
  const coding = name.startsWith('gzip') ? 'gzip' : name.startsWith('br') ? 'br' : 'zstd';
  const cells = pages.map((page) => {
    const coded = code(page);
    const encodeMs = milliseconds(() => code(page));
    const decodeMs = milliseconds(() => decodeWhole(coding, coded, 2_000_000));
    return `${(coded.length / 1_000).toFixed(1)} KB, ${encodeMs.toFixed(2)} ms, ${decodeMs.toFixed(2)} ms`;
  });
  return `| ${[name, ...cells].join(' | ')} |`;
});
const table = [
  '| bytes, time to encode, time to decode | 10 KB | 100 KB | 1,000 KB |',
  '|---|---|---|---|',
  ...rows,
].join('\n');
console.log(table);
if (values.write)
  writeMarkedSection(new URL('../docs/benchmarks.md', import.meta.url), 'compression', table);
