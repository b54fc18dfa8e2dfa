import { createNoise } from '../test/support/noise.ts';

const PAGE_BYTES = 10_000;

/** Pages of text that compresses as text does; each is a little different. */
export const pages: readonly string[] = Array.from({ length: 64 }, (_, n) => {
  const noise = createNoise(n + 1);
  const words = Array.from({ length: 400 }, () => noise.int(2 ** 31).toString(36));
  let page = `<!doctype html><meta charset="utf-8"><title>Page ${n}</title><h1>Page ${n}</h1><p>`;
  while (page.length < PAGE_BYTES) {
    page += noise.int(12) === 0 ? '</p>\n<p>' : `${noise.pick(words)} `;
  }
  return `${page}</p>`;
});
