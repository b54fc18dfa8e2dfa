import type { UpdateFilter } from 'mongodb';
import { toDay } from '../../domain/stats.ts';
import type { CountChanges } from '../count-changes.ts';
import type { CountsDocument } from './collections.ts';
import { dayIncrements } from './counts-document.ts';

/** The update that writes changes which happened at `now`. */
export function countsUpdate(
  { sums, day, moments, streaks }: CountChanges,
  now: Date,
): UpdateFilter<CountsDocument> {
  const date = toDay(now);
  const $inc: Record<string, number> = {
    ...Object.fromEntries([...sums].filter(([, by]) => by !== 0)),
    ...(day === undefined ? {} : dayIncrements(`days.${date}`, day)),
  };
  const $max = Object.fromEntries([...moments].map((moment) => [`last.${moment}`, now]));
  const $min: Record<string, unknown> = day === undefined ? {} : { firstDay: date };
  const $set: Record<string, string> = {};
  const $unset: Record<string, ''> = {};
  for (const { kind, failed } of streaks) {
    const path = `failing.${kind}`;
    if (failed === undefined) $unset[path] = '';
    else {
      $inc[`${path}.count`] = failed.count;
      $min[`${path}.since`] = now;
      $max[`${path}.at`] = now;
      $set[`${path}.error`] = failed.error;
    }
  }
  const operators = Object.entries({ $inc, $max, $min, $set, $unset });
  return Object.fromEntries(operators.filter(([, changes]) => Object.keys(changes).length > 0));
}
