import { earliest, type QueueDepths } from '../queue-depth.ts';
import { type Sql, toOptionalDate } from './sql.ts';

/** What the queues hold, see `StatsStore.queueDepths`. A step in an index for each crawler that has work. */
export function queueDepths(sql: Sql, limit: number): QueueDepths {
  const rows = sql.all(
    `SELECT a.name AS account, c.name AS crawler, d.waiting, d.retrying, d.running,
        CASE WHEN NOT c.paused_by_user AND NOT c.paused_by_monitor THEN
          (SELECT due_at FROM jobs j WHERE j.crawler_id = d.crawler_id AND j.gen = d.purges
            AND j.state <> 'running' ORDER BY due_at LIMIT 1) END AS due_at
      FROM dispatch d JOIN crawlers c USING (crawler_id) JOIN accounts a USING (account_id)
      WHERE d.waiting + d.retrying + d.running > 0
      ORDER BY d.waiting + d.retrying DESC, crawler_id`,
  );
  const depths = rows.map((row) => ({
    account: String(row.account),
    crawler: String(row.crawler),
    waiting: Number(row.waiting),
    retrying: Number(row.retrying),
    running: Number(row.running),
    oldestDueAt: toOptionalDate(row.due_at),
  }));
  const sum = (count: 'waiting' | 'retrying' | 'running'): number =>
    depths.reduce((total, depth) => total + depth[count], 0);
  return {
    total: {
      waiting: sum('waiting'),
      retrying: sum('retrying'),
      running: sum('running'),
      oldestDueAt: earliest(depths.map((each) => each.oldestDueAt)),
    },
    longest: depths.slice(0, limit),
  };
}
