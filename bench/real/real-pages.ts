import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { createNoise, type Noise } from '../../test/support/noise.ts';

/** How a site codes its pages. */
export type Coding = 'gzip' | 'br' | 'zstd' | 'none';

/** Hosts of a hundred that code their pages so, with what servers use for pages that they make. */
export const CODINGS: Readonly<Record<Coding, { share: number; code(page: Buffer): Buffer }>> = {
  gzip: { share: 55, code: (page) => gzipSync(page, { level: 6 }) },
  br: {
    share: 30,
    code: (page) =>
      brotliCompressSync(page, {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: 5,
          [constants.BROTLI_PARAM_SIZE_HINT]: page.length,
        },
      }),
  },
  zstd: { share: 5, code: (page) => zstdCompressSync(page) },
  none: { share: 10, code: (page) => page },
};

/** Sizes are drawn from a log-normal distribution, those outside of the limits again. */
export const SIZES = { medianKb: 80, sigma: 0.65, leastKb: 20, mostKb: 250 };
/** A host takes this long for each answer, drawn evenly on a logarithmic scale. */
export const DELAYS_MS = { least: 30, most: 300 };

const uniform = (noise: Noise): number => (noise.int(2 ** 30) + 0.5) / 2 ** 30;

/** The sizes of `count` pages, in bytes. */
export function pageSizes(count: number): number[] {
  const noise = createNoise(20_261_124);
  return Array.from({ length: count }, () => {
    for (;;) {
      // Box and Muller.
      const normal =
        Math.sqrt(-2 * Math.log(uniform(noise))) * Math.cos(2 * Math.PI * uniform(noise));
      const kb = SIZES.medianKb * Math.exp(SIZES.sigma * normal);
      if (kb >= SIZES.leastKb && kb <= SIZES.mostKb) return Math.round(kb * 1_000);
    }
  });
}

/** A page of about so many bytes, which gzip makes about five times shorter, as it does real ones. */
export function createPage(bytes: number, seed: number): Buffer {
  const noise = createNoise(seed + 1);
  const words = Array.from({ length: 3_000 }, () => createWord(noise));
  // A few words make most of a text, as in every language.
  const word = (): string => words[Math.floor(words.length * uniform(noise) ** 8)] ?? '';
  const text = (count: number): string => Array.from({ length: count }, word).join(' ');
  const key = (): string => noise.int(2 ** 31).toString(36);
  const parts = [
    `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>${text(6)}</title>\n`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    ...Array.from(
      { length: 12 },
      () => `<link rel="preload" as="script" href="/assets/${word()}.${key()}.js">\n`,
    ),
    '</head><body class="page page--listing">\n',
  ];
  let length = parts.reduce((sum, part) => sum + part.length, 0);
  while (length < bytes) {
    const part = block(noise, text, word, key);
    parts.push(part);
    length += Buffer.byteLength(part);
  }
  return Buffer.from(`${parts.join('')}</body></html>\n`);
}

/** One block of a page: a card of a list, a paragraph, or data for a script. */
function block(
  noise: Noise,
  text: (count: number) => string,
  word: () => string,
  key: () => string,
): string {
  const kind = noise.int(10);
  const id = noise.int(1_000_000);
  if (kind < 5) {
    return `<article class="card card--product" data-id="${id}"><a class="card__link" href="/${word()}/${word()}-${id}"><img class="card__image" loading="lazy" width="320" height="240" src="https://images.example/${key()}/320x240.webp" alt="${text(4)}"><h3 class="card__title">${text(5)}</h3></a><p class="card__text">${text(18)}</p><span class="card__price" data-currency="EUR">${noise.int(900)}.${10 + noise.int(89)} €</span></article>\n`;
  }
  if (kind < 9) return `<p>${text(60 + noise.int(60))}.</p>\n`;
  return `<script type="application/json">{"id":${id},"slug":"${word()}-${word()}","token":"${key()}${key()}","tags":["${word()}","${word()}"],"rating":${noise.int(50) / 10}}</script>\n`;
}

const SYLLABLES =
  'ba co di fe gu ha in jo ka le mi no or pe qua ri so ta ur ve wi xe ya zo st er an'.split(' ');

function createWord(noise: Noise): string {
  return Array.from({ length: 1 + noise.int(4) }, () => noise.pick(SYLLABLES)).join('');
}
