import {
  computeJobState,
  type JobState,
  type JobsOverview,
  type JobsQueryOptions,
  type JobsResult,
  type JobsSort,
  type JobWithState,
} from 'agenda';
import { allOf, dataIs, oneOf, type SqlFilter } from './job-filter.ts';
import { columnOf, jobFromRow, type Row, type SqlQuery } from './job-row.ts';

/** Lists jobs with their states. A state is computed, so filtering by it reads all that match otherwise. */
export async function queryJobs(
  query: SqlQuery,
  options: JobsQueryOptions = {},
): Promise<JobsResult> {
  const { state, skip = 0, limit = 0 } = options;
  const filter = allOf(toFilters(options)) ?? { where: 'true', params: [] };
  const select = `SELECT * FROM agenda_jobs WHERE ${filter.where} ORDER BY ${orderBy(options.sort)}`;
  if (state === undefined) {
    const rows = await query(`${select} LIMIT ? OFFSET ?`, [
      ...filter.params,
      limit > 0 ? limit : -1,
      skip,
    ]);
    const [counted] = await query(
      `SELECT count(*) AS total FROM agenda_jobs WHERE ${filter.where}`,
      filter.params,
    );
    return { jobs: withStates(rows), total: Number(counted?.['total']) };
  }
  const matching = withStates(await query(select, filter.params)).filter((job) =>
    state === 'paused' ? job.disabled === true : job.state === state,
  );
  const end = limit > 0 ? skip + limit : undefined;
  return { jobs: matching.slice(skip, end), total: matching.length };
}

/** How many jobs of each name are in each state. */
export async function jobsOverview(query: SqlQuery): Promise<JobsOverview[]> {
  const overviews = new Map<string, JobsOverview & Record<JobState, number>>();
  for (const job of withStates(await query('SELECT * FROM agenda_jobs ORDER BY name', []))) {
    const overview = overviews.get(job.name) ?? {
      name: job.name,
      total: 0,
      running: 0,
      scheduled: 0,
      queued: 0,
      completed: 0,
      failed: 0,
      repeating: 0,
      paused: 0,
    };
    overview.total += 1;
    overview[job.state] += 1;
    if (job.disabled) overview.paused += 1;
    overviews.set(job.name, overview);
  }
  return [...overviews.values()];
}

function withStates(rows: readonly Row[]): JobWithState[] {
  const now = new Date();
  return rows.map((row) => {
    const job = jobFromRow(row);
    return { ...job, state: computeJobState(job, now) } as JobWithState;
  });
}

function toFilters(options: JobsQueryOptions): SqlFilter[] {
  const { name, names, id, ids, search, data, includeDisabled = true } = options;
  const filters: SqlFilter[] = [];
  if (search) {
    filters.push({ where: 'instr(lower(name), lower(?)) > 0', params: [search] });
  } else if (name) {
    filters.push(oneOf('name', [name]));
  } else if (names?.length) {
    filters.push(oneOf('name', names));
  }
  if (id) filters.push(oneOf('id', [id]));
  else if (ids?.length) filters.push(oneOf('id', ids));
  if (data !== undefined) filters.push(...dataIs(data));
  if (!includeDisabled) filters.push({ where: 'disabled IS NOT 1', params: [] });
  return filters;
}

function orderBy(sort: JobsSort | undefined): string {
  const terms = (
    ['nextRunAt', 'lastRunAt', 'lastFinishedAt', 'priority', 'name', 'data'] as const
  ).flatMap((field) => {
    const direction = sort?.[field];
    if (direction === undefined) return [];
    return [`${columnOf(field)} ${direction === 'asc' ? 'ASC' : 'DESC'}`];
  });
  return terms.length > 0 ? terms.join(', ') : 'next_run_at DESC, last_run_at DESC';
}
