import { randomUUID } from 'node:crypto';
import type { JobParameters } from 'agenda';
import { type SqlFilter, uniqueIs } from './job-filter.ts';
import { columnsFromJob, jobFromRow, type Row, type SqlQuery } from './job-row.ts';

type Props = Record<string, unknown>;

/**
 * Saves a job as Agenda's MongoDB repository does: by id when it has one, else one per name for type `single`, one per
 * `unique` object, or a new one. Fields that the job lacks become empty. Each statement stands alone; two saves of the same
 * unique job at once still leave one.
 */
export async function saveJob(
  query: SqlQuery,
  job: JobParameters,
  by: string | undefined,
): Promise<JobParameters> {
  const { _id, unique, uniqueOpts, ...rest } = job;
  const props: Props = { ...rest };
  const now = new Date();
  if (_id) {
    const row = await update(query, props, by, {
      where: 'id = ? AND name = ?',
      params: [_id, job.name],
    });
    return row ? jobFromRow(row) : job;
  }
  if (job.type === 'single') {
    const { nextRunAt, ...others } = props;
    const overdue = nextRunAt instanceof Date && nextRunAt <= now;
    return upsert(query, props, overdue ? others : props, by, {
      where: `name = ? AND type = 'single'`,
      params: [job.name],
    });
  }
  if (unique) {
    const same = uniqueIs(job.name, unique);
    const debounce = uniqueOpts?.debounce;
    if (debounce) return saveDebounced(query, props, by, same, debounce, now);
    return upsert(query, props, uniqueOpts?.insertOnly ? undefined : props, by, same);
  }
  const row = await insert(query, props, by);
  return jobFromRow(row as Row);
}

async function saveDebounced(
  query: SqlQuery,
  props: Props,
  by: string | undefined,
  same: SqlFilter,
  debounce: { readonly delay: number; readonly maxWait?: number; readonly strategy?: string },
  now: Date,
): Promise<JobParameters> {
  const [row] = await query(`SELECT * FROM agenda_jobs WHERE ${same.where} LIMIT 1`, same.params);
  const leading = debounce.strategy === 'leading';
  const later = new Date(now.getTime() + debounce.delay);
  const first = { ...props, debounceStartedAt: now, ...(leading ? {} : { nextRunAt: later }) };
  if (!row) return upsert(query, first, first, by, same);
  const existing = jobFromRow(row);
  const startedAt = existing.debounceStartedAt ?? now;
  const waited = now.getTime() - startedAt.getTime();
  const again = leading
    ? { ...props, nextRunAt: existing.nextRunAt, debounceStartedAt: startedAt }
    : debounce.maxWait && waited >= debounce.maxWait
      ? { ...props, nextRunAt: now, debounceStartedAt: null }
      : { ...props, nextRunAt: later, debounceStartedAt: startedAt };
  return upsert(query, first, again, by, same);
}

/** Changes the job that `same` means to `changes`, or inserts `fresh`; without `changes` an existing one stays as it is. */
async function upsert(
  query: SqlQuery,
  fresh: Props,
  changes: Props | undefined,
  by: string | undefined,
  same: SqlFilter,
): Promise<JobParameters> {
  const find = async (): Promise<Row | undefined> =>
    changes
      ? update(query, changes, by, same)
      : (await query(`SELECT * FROM agenda_jobs WHERE ${same.where} LIMIT 1`, same.params))[0];
  const row = (await find()) ?? (await insert(query, fresh, by, same)) ?? (await find());
  if (!row) throw new Error('A job was removed while it was saved');
  return jobFromRow(row);
}

async function update(
  query: SqlQuery,
  props: Props,
  by: string | undefined,
  which: SqlFilter,
): Promise<Row | undefined> {
  const { names, values } = columnsFromJob(props, by);
  const [row] = await query(
    `UPDATE agenda_jobs SET ${names.map((name) => `${name} = ?`).join(', ')}
     WHERE id = (SELECT id FROM agenda_jobs WHERE ${which.where} LIMIT 1) RETURNING *`,
    [...values, ...which.params],
  );
  return row;
}

async function insert(
  query: SqlQuery,
  props: Props,
  by: string | undefined,
  unless?: SqlFilter,
): Promise<Row | undefined> {
  const { names, values } = columnsFromJob(props, by);
  const absent = unless
    ? `WHERE NOT EXISTS (SELECT 1 FROM agenda_jobs WHERE ${unless.where})`
    : 'WHERE true';
  const [row] = await query(
    `INSERT INTO agenda_jobs (id, ${names.join(', ')})
     SELECT ?${', ?'.repeat(names.length)} ${absent} RETURNING *`,
    [randomUUID(), ...values, ...(unless?.params ?? [])],
  );
  return row;
}
