import { randomBytes } from 'node:crypto';

// A per-process random part and a counter, as in BSON's ObjectId: unique without coordination, and
// increasing within a process, which keeps index inserts at the right edge.
const processPart = randomBytes(5).toString('hex');
let counter = randomBytes(3).readUIntBE(0, 3);

/** A new identifier: 24 lower-case hexadecimal digits, the first eight the second it was made. */
export function createRid(now: Date): string {
  counter = (counter + 1) % 0x1000000;
  const seconds = Math.floor(now.getTime() / 1000) % 0x100000000;
  return (
    seconds.toString(16).padStart(8, '0') + processPart + counter.toString(16).padStart(6, '0')
  );
}

/** Whether `text` has the form of a `rid`. */
export function isRid(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}
