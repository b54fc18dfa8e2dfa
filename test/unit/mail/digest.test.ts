import { expect, test } from 'vitest';
import { toDigest } from '../../../src/mail/digest.ts';

const noticeOf = (n: number) => ({
  subject: `Crawler c${n} is paused: its callback URL does not answer`,
  text: `The crawler c${n} was paused.\n`,
});

test('a single notice stays as it is', () => {
  expect(toDigest('shop', [noticeOf(1)])).toEqual(noticeOf(1));
});

test('several are listed in one mail, the first of them in full', () => {
  const { subject, text } = toDigest(
    'shop',
    Array.from({ length: 8 }, (_, n) => noticeOf(n)),
  );
  expect(subject).toBe('8 notices about the crawlers of account shop');
  for (let n = 0; n < 8; n += 1) expect(text).toContain(`- ${noticeOf(n).subject}\n`);
  expect(text.match(/was paused\./g)).toHaveLength(5);
});

test('however many there are, the mail stays short', () => {
  const { subject, text } = toDigest(
    'shop',
    Array.from({ length: 10_000 }, (_, n) => noticeOf(n)),
  );
  expect(subject).toContain('10000');
  expect(text).toContain('- and 9000 more');
  expect(text.length).toBeLessThan(100_000);
});

test('what happens to one crawler several times is listed once, and its newest notice quoted', () => {
  const times = ['10:00', '10:02', '10:04'].map((at) => ({
    subject: 'Crawler a is paused',
    text: `It was paused at ${at}.\n`,
  }));
  const { subject, text } = toDigest('shop', [...times, noticeOf(1)]);
  expect(subject).toContain('4 notices');
  expect(text).toContain('- Crawler a is paused (3 times)\n');
  expect(text.match(/It was paused at/g)).toHaveLength(1);
  expect(text).toContain('10:04');
});
