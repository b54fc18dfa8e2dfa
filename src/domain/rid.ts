import { randomBytes } from 'node:crypto';
import { invalidField } from './errors.ts';

/** Most `rid`s that a call selects by. */
const MAX_SELECTED = 1_000;

// A random part for each process and a counter, as in BSON's ObjectId: unique without coordination,
// and ascending within a process, so that index entries are added at the end.
const processPart = randomBytes(5).toString('hex');
let counter = randomBytes(3).readUIntBE(0, 3);

/**
 * A new identifier of 24 lower-case hexadecimal digits; the first eight are the second in which it
 * was made.
 */
export function createRid(now: Date): string {
  counter = (counter + 1) % 0x1000000;
  const seconds = Math.floor(now.getTime() / 1000) % 0x100000000;
  return (
    seconds.toString(16).padStart(8, '0') + processPart + counter.toString(16).padStart(6, '0')
  );
}

/** When a `rid` was made, to the second. */
export function ridTime(rid: string): Date {
  return new Date(Number.parseInt(rid.slice(0, 8), 16) * 1_000);
}

/** Whether `text` has the form of a `rid`. */
export function isRid(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}

/** The `rids` of a selection, each once. Throws a DomainError for too many, or one that has not the form. */
export function selectedRids(rids: readonly string[]): string[] {
  if (rids.length > MAX_SELECTED) {
    throw invalidField('rids', `rids must hold at most ${MAX_SELECTED} RIDs.`);
  }
  const wrong = rids.findIndex((rid) => !isRid(rid));
  if (wrong !== -1) throw invalidField(`rids[${wrong}]`, `rids[${wrong}] is not a RID.`);
  return [...new Set(rids)];
}
