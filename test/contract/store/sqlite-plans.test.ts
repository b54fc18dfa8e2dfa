import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { listings } from '../../../src/store/sqlite/listings.ts';
import { look } from '../../../src/store/sqlite/look.ts';
import { migrate } from '../../../src/store/sqlite/migrations.ts';
import { createSql, type Sql, type SqlValue } from '../../../src/store/sqlite/sql.ts';
import { at } from './store-harness.ts';

interface Statement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

/** The same statements, which are noted. */
function noting(sql: Sql, seen: Statement[]): Sql {
  const note = (text: string, values: readonly SqlValue[]) => void seen.push({ text, values });
  return {
    ...sql,
    get(text, ...values) {
      note(text, values);
      return sql.get(text, ...values);
    },
    all(text, ...values) {
      note(text, values);
      return sql.all(text, ...values);
    },
    each(text, ...values) {
      note(text, values);
      return sql.each(text, ...values);
    },
  };
}

function planOf(database: DatabaseSync, { text, values }: Statement): string[] {
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values);
  return steps.map((step) => String(step['detail']));
}

/** What a statement reads without an index, or sorts; empty when it does neither. */
function faults(database: DatabaseSync, statement: Statement): string[] {
  return planOf(database, statement)
    .filter((detail) => detail.startsWith('SCAN') || detail.includes('TEMP B-TREE'))
    .map((detail) => `${detail}: ${statement.text}`);
}

test('every listing of the embedded store reads by an index, in its order', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database);
  const seen: Statement[] = [];
  const sql = noting(createSql(database), seen);
  const crawlerId = 'c';
  const place = `${at(5).getTime()}.${'0'.repeat(24)}`;
  for (const part of [{ limit: 5 }, { limit: 5, cursor: place }]) {
    for (const state of [undefined, 'waiting', 'retrying'] as const) {
      listings.jobs(sql, crawlerId, state, part);
    }
    for (const filter of [
      {},
      { state: 'failed' },
      { state: 'delivered' },
      { outcome: 'failed' },
      { range: { from: at(0), to: at(9) } },
      { range: { from: at(0), to: at(9) }, state: 'failed' },
    ] as const) {
      listings.deliveries(sql, crawlerId, filter, part);
    }
    for (const delivers of [true, false]) {
      const scope = { accountId: 'a', tokenType: 'normal', crawlerId, delivers } as const;
      listings.failedCrawls(sql, scope, part);
      listings.failedCrawls(sql, { ...scope, range: { from: at(0), to: at(9) } }, part);
    }
  }
  for (const cursor of [undefined, '9']) {
    const part = { limit: 5, ...(cursor === undefined ? {} : { cursor }) };
    for (const outcome of [undefined, 'completed', 'failed'] as const) {
      const scope = { accountId: 'a', tokenType: 'normal' } as const;
      listings.results(sql, scope, outcome, part);
      listings.results(sql, { ...scope, crawlerId }, outcome, part);
    }
  }
  listings.locate(sql, 'r');
  listings.crawlers(sql, ['a'], 10);
  listings.crawlers(sql, ['a'], 10, 'b');
  expect(seen.length).toBeGreaterThan(25);
  expect(seen.flatMap((statement) => faults(database, statement))).toEqual([]);
  // Further parts begin at their place, and do not read the parts before them.
  const further = seen.filter(({ values }) => values.includes(at(5).getTime()));
  const seeks = further.map((statement) => planOf(database, statement).join(' '));
  expect(seeks.filter((plan) => !/\((?:due_at|created_at|stored_at),rid\)[<>]/.test(plan))).toEqual(
    [],
  );
  expect(seeks).toHaveLength(13);
  // What failed is found without a look at what did not.
  const plans = seen.flatMap((statement) => planOf(database, statement)).join(' ');
  for (const index of [
    'jobs_retrying',
    'deliveries_failed',
    'deliveries_failed_crawls',
    'results_failed',
    'results_failed_by_crawler',
  ]) {
    expect(plans).toMatch(new RegExp(`USING INDEX ${index} `));
  }
  // The check itself finds what is read without an index, and what is sorted.
  const wrong = { text: 'SELECT * FROM results ORDER BY url', values: [] };
  expect(faults(database, wrong)).toHaveLength(2);
  // Those that are being sent are few: they are read by their index and sorted.
  seen.length = 0;
  listings.deliveries(sql, crawlerId, { state: 'pending' }, { limit: 5 });
  const found = seen.flatMap((statement) => faults(database, statement));
  expect(found).toHaveLength(1);
  expect(found[0]).toContain("state = 'sending'");
  database.close();
});

test('a look from host to host reads no job that is not due', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database);
  database.exec(`INSERT INTO jobs (rid, crawler_id, account_id, host, state, due_at, priority, created_at, method,
      url, parameters, callback_headers)
    SELECT value, 'c', 'a', 'h', 'waiting', 1000 * value, 3 + value, 0, 'GET', '', '{}', '[]'
    FROM json_each('[1,2,3,4,5]')`);
  const seen: Statement[] = [];
  const sql = noting(createSql(database), seen);
  const queue = { crawlerId: 'c', purges: 0, hasPriorities: true };
  const { jobs, nextDueAt } = look(sql, queue, { limit: 9 }, new Date(4_000));
  expect(jobs.map(({ rid }) => rid)).toEqual(['4', '3', '2', '1']);
  expect(nextDueAt).toEqual(new Date(5_000));
  const due = seen.filter(({ text }) => text.includes('due_at <= ?'));
  const searches = [...new Map(due.map((statement) => [statement.text, statement])).values()]
    .flatMap((statement) => planOf(database, statement))
    .filter((step) => step.startsWith('SEARCH'));
  // Four steps of priority above the default, and the five priorities of the host.
  expect(searches).toHaveLength(9);
  expect(searches.filter((step) => !step.includes('AND priority=? AND due_at<?)'))).toEqual([]);
  database.close();
});

test('a part of failed crawls ends in time, whatever is selected', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database);
  const sql = createSql(database);
  database.exec(`INSERT INTO results (rid, account_id, token_type, page_id, stored_at, expires_at, url, pushed_url,
      cb_status, original_status, content_type, extras, crawler_id)
    SELECT printf('%024x', value), 'a', 'normal', 0, value, 99, '', 'u' || value, 523, 0, '', '{}', 'c'
    FROM json_each('[1,2,3,4,5]')`);
  /** Rows that take long, as those with bodies of a megabyte do. */
  const slow: Sql = {
    ...sql,
    *each(text, ...values) {
      for (const row of sql.each(text, ...values)) {
        const until = performance.now() + 60;
        while (performance.now() < until);
        yield row;
      }
    },
  };
  const rid = (value: number): string => value.toString(16).padStart(24, '0');
  const scope = { accountId: 'a', tokenType: 'normal', crawlerId: 'c', delivers: false } as const;
  const seen: string[] = [];
  let cursor: string | undefined;
  let parts = 0;
  do {
    const part = { limit: 10, ...(cursor === undefined ? {} : { cursor }) };
    const found = listings.failedCrawls(slow, { ...scope, rids: [rid(2), rid(4)] }, part);
    seen.push(...found.rows.map(({ pushedUrl }) => pushedUrl));
    ({ cursor } = found);
    parts += 1;
  } while (cursor !== undefined);
  expect(seen).toEqual(['u2', 'u4']);
  expect(parts).toBe(6);
  database.close();
});

test('rows that may be long are not in the tree of their keys', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database);
  // A search for a key would read each of them that it passes, to its end.
  const long = ['jobs', 'deliveries', 'results', 'pages', 'page_pieces', 'media', 'push_requests'];
  const tables = database.prepare('SELECT name, wr FROM pragma_table_list').all();
  const withoutRowid = tables.filter(({ wr }) => wr === 1).map(({ name }) => name);
  expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(long));
  expect(withoutRowid.filter((name) => long.includes(String(name)))).toEqual([]);
});
