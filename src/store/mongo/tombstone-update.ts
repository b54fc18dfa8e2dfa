import { FIELDS_DROPPED_AT_END } from './job-document.ts';

/** Turns a job into a tombstone that remembers the state it was in. */
export function tombstoneUpdate(end: 'deleted' | 'purged', endedAt: Date, by: string, seq: number) {
  return [
    { $set: { from: '$state', state: 'ended', end, endedAt, by, seq } },
    { $unset: Object.keys(FIELDS_DROPPED_AT_END) },
  ];
}
