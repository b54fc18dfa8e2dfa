// A crawl thread whose decoder has two faults, for pages that name these character sets: with euc-kr it never ends, with
// shift_jis it fills the heap. All else is the real program.
import iconv from 'iconv-lite';

const { getDecoder } = iconv;
iconv.getDecoder = (charset, options) => {
  if (charset === 'cp949') for (;;) Math.sqrt(charset.length);
  if (charset === 'shift_jis') {
    const kept: object[] = [];
    for (;;) kept.push({ at: kept.length, text: `${kept.length}` });
  }
  return getDecoder(charset, options);
};
await import('../../src/threads/crawl-thread.ts');
