// A crawl thread whose decoder has two faults, for pages that name these character sets: with euc-kr it never ends, with
// shift_jis it fills the heap. All else is the real program.
import iconv from 'iconv-lite';

const { decode } = iconv;
iconv.decode = (bytes, charset, options) => {
  if (charset === 'cp949') for (;;) Math.sqrt(bytes.length);
  if (charset === 'shift_jis') {
    const kept: object[] = [];
    for (;;) kept.push({ at: kept.length, text: `${kept.length}` });
  }
  return decode(bytes, charset, options);
};
await import('../../src/threads/crawl-thread.ts');
