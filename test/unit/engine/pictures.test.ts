import { expect, test } from 'vitest';
import { parseClickSelectors } from '../../../src/domain/click-selectors.ts';
import { parseCrawlParameters } from '../../../src/domain/parameters.ts';
import { createDevice } from '../../../src/engine/browser/devices.ts';
import { pictureArea } from '../../../src/engine/browser/page-picture.ts';

const PIXELS = 16 * 1024 * 1024;

test.each([
  // As it is.
  { width: 1_366, height: 768, scale: 1, expected: { width: 1_366, height: 768, scale: 1 } },
  { width: 412, height: 915, scale: 2.625, expected: { width: 412, height: 915, scale: 2.625 } },
  // Less sharp, but whole.
  { width: 981, height: 8_000, scale: 2.625, expected: { width: 981, height: 8_000 } },
  // Cut off below, never narrower.
  { width: 1_366, height: 20_000, scale: 1, expected: { width: 1_366, height: 12_282, scale: 1 } },
  { width: 3_008, height: 20_000, scale: 1, expected: { width: 3_008, scale: 1 } },
  { width: 400, height: 100_000, scale: 1, expected: { width: 400, height: 16_384, scale: 1 } },
  // Wider than anything that is drawn.
  { width: 40_000, height: 10, scale: 1, expected: { width: 40_000, height: 10 } },
])(
  'a page of $width x $height at $scale is drawn within bounds',
  ({ width, height, scale, expected }) => {
    const area = pictureArea(width, height, scale);
    expect(area).toMatchObject(expected);
    expect(area.width * area.height * area.scale ** 2).toBeLessThanOrEqual(PIXELS + 1);
    expect(Math.max(area.width, area.height) * area.scale).toBeLessThanOrEqual(16_384.001);
  },
);

test('a picture that can never be taken is refused, and a window of that size is drawn less sharply', () => {
  const size = { width: 4_096, height: 16_384, device: 'mobile', mode: 'viewport' };
  const parse = (input: object) =>
    parseCrawlParameters(input as Record<string, unknown>, 'javascript');
  expect(() => parse({ ...size, screenshot: true })).toThrow(/16777216 pixels/);
  expect(() => parse({ ...size, screenshot: true, mode: undefined })).toThrow(/pixels/);
  expect(() => parse({ device: 'mobile', height: 16_384, screenshot: true })).toThrow(/pixels/);
  expect(parse({ screenshot: true, width: 4_096, height: 4_096 })).toMatchObject({ width: 4_096 });
  const { screen } = createDevice(parse(size), { identity: 'named', version: '153.0.0.0' });
  expect(screen.width * screen.height * screen.scale ** 2).toBeLessThanOrEqual(PIXELS + 1);
});

test.each([
  ['#a', [['#a']]],
  ['#more, body', [['#more', 'body']]],
  ['.b,body|#c', [['.b', 'body'], ['#c']]],
  ['[data-x="a|b"] > i|p', [['[data-x="a|b"] > i'], ['p']]],
  ["[lang|='en']", [['[lang|="en"]']]],
])('css_click_selector %s means %j', (text, clicks) => {
  const required = clicks.map((selectors) => ({ selectors, isOptional: false }));
  expect(parseClickSelectors(text)).toEqual(required);
});

test('a click that ends in a question mark is optional', () => {
  expect(parseClickSelectors('#a ? | .b,.c?|[x="?"]')).toEqual([
    { selectors: ['#a'], isOptional: true },
    { selectors: ['.b', '.c'], isOptional: true },
    { selectors: ['[x="?"]'], isOptional: false },
  ]);
  expect(() => parseClickSelectors('?')).toThrow();
});

test.each(['#a|', '|', 'a['])('css_click_selector %s is refused', (text) => {
  expect(() => parseClickSelectors(text)).toThrow();
});
