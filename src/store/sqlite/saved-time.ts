import type { Sql } from './sql.ts';

/** Less than any wait that matters, and rare enough to cost nothing. */
const SAVE_EVERY_MS = 1_000;

/** The service time of the last write, at most a second less; 0 before the first write. */
export function readServiceTime(sql: Sql): number {
  return Number(sql.get('SELECT saved_ms FROM service_time')?.saved_ms ?? 0);
}

/** Saves the service time with what is written, so that a later start does not begin before it. */
export function saveServiceTime(sql: Sql, nowMs: number): void {
  sql.run('UPDATE service_time SET saved_ms = ? WHERE saved_ms <= ?', nowMs, nowMs - SAVE_EVERY_MS);
}

/** Writes a row as it is, to see whether the disk takes that. */
export function tryWrite(sql: Sql): void {
  sql.run('UPDATE service_time SET saved_ms = saved_ms');
}
