import { expect, test } from 'vitest';
import type { Delivery } from '../../../src/domain/delivery.ts';
import { resultLines, TooLong } from '../../../src/webhook/result-lines.ts';
import { deliveryOf } from '../../support/webhook-fixtures.ts';

const page = Buffer.alloc(20 * 1_024 * 1_024, 'a');

/** The bytes of the lines of deliveries whose pages are `page`. */
async function lengthOf(deliveries: readonly Delivery[]): Promise<number> {
  let bytes = 0;
  for await (const piece of resultLines(deliveries, async () => page)) bytes += piece.byteLength;
  return bytes;
}

test('results that unpack to more than a POST may have are refused together, and not alone', async () => {
  const delivery = deliveryOf('');
  await expect(lengthOf([delivery, delivery])).rejects.toThrow(TooLong);
  expect(await lengthOf([delivery])).toBeGreaterThan(page.byteLength);
});

test('other work has its turns while the lines are made', async () => {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await lengthOf([deliveryOf('')]);
  isOver = true;
  expect(turns).toBeGreaterThan(100);
});

test('short results come in few chunks, for each is a call of zlib', async () => {
  const deliveries = Array.from({ length: 100 }, () => deliveryOf(''));
  const chunks = await Array.fromAsync(
    resultLines(deliveries, async () => Buffer.alloc(2_000, 'a')),
  );
  const text = Buffer.concat(chunks).toString();
  expect(text.split('\n')).toHaveLength(101);
  expect(chunks.length).toBeLessThan(text.length / 60_000 + 1);
});
