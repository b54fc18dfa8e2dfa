import { totalmem } from 'node:os';

/** Memory that the process may use, in bytes. */
export function usableMemory(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
