import { expect, test } from 'vitest';
import { bytes, duration } from '../../../src/console/format/numbers.ts';

const MIB = 1024 ** 2;

test('labels of an axis of bytes tell each tick as it is', () => {
  const ticks = [0, 256, 512, 768, 1024, 1280, 1536, 1792].map((mebibytes) => mebibytes * MIB);
  expect(ticks.map(bytes)).toEqual([
    '0 B',
    '256 MiB',
    '512 MiB',
    '768 MiB',
    '1 GiB',
    '1.25 GiB',
    '1.5 GiB',
    '1.75 GiB',
  ]);
});

test('labels of an axis of times tell each tick as it is', () => {
  expect([15_000, 30_000, 45_000, 60_000, 75_000].map(duration)).toEqual([
    '15 s',
    '30 s',
    '45 s',
    '1 min',
    '1.25 min',
  ]);
});

test('numbers that are no round steps have few digits', () => {
  expect(bytes(286.13 * MIB)).toBe('286.1 MiB');
  expect(duration(12_345)).toBe('12.3 s');
  expect(duration(1_234)).toBe('1.23 s');
});
