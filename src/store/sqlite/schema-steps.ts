/** The version of the schema that the first of the {@link schemaSteps} makes, that of release 0.1.0. */
export const FIRST_VERSION = 12;

/**
 * The schema, one step per version. A released step never changes; a new one is added. Moments are
 * milliseconds since 1970. Indexes on jobs and deliveries cover live rows only, so finished work
 * costs nothing.
 */
export const schemaSteps: readonly string[] = [
  `
  CREATE TABLE accounts (
    account_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT NOT NULL,
    normal_hash TEXT NOT NULL UNIQUE, javascript_hash TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL,
    queued INTEGER NOT NULL DEFAULT 0, over_limit INTEGER NOT NULL DEFAULT 0, limits TEXT NOT NULL DEFAULT '{}',
    crawlers INTEGER NOT NULL DEFAULT 0, concurrency INTEGER NOT NULL DEFAULT 0,
    stored_bytes INTEGER NOT NULL DEFAULT 0, queued_bytes INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE TABLE removed_accounts (account_id TEXT PRIMARY KEY, removed_at INTEGER NOT NULL) WITHOUT ROWID;

  CREATE TABLE crawlers (
    crawler_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, name TEXT NOT NULL, token_type TEXT NOT NULL,
    delivery TEXT NOT NULL, callback_url TEXT, paused_by_user INTEGER NOT NULL DEFAULT 0,
    paused_by_monitor INTEGER NOT NULL DEFAULT 0, webhook_secrets TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, probe_at INTEGER, paused_at INTEGER, pause_reason TEXT, last_probe_at INTEGER,
    settings TEXT NOT NULL DEFAULT '{}',
    UNIQUE (account_id, name)
  ) WITHOUT ROWID;
  CREATE INDEX crawlers_probe ON crawlers (probe_at) WHERE probe_at IS NOT NULL;
  CREATE INDEX crawlers_callback ON crawlers (callback_url) WHERE probe_at IS NOT NULL;

  CREATE TABLE dispatch (
    crawler_id TEXT PRIMARY KEY, waiting INTEGER NOT NULL DEFAULT 0, running INTEGER NOT NULL DEFAULT 0,
    retrying INTEGER NOT NULL DEFAULT 0, pushed INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0, deleted INTEGER NOT NULL DEFAULT 0, purged INTEGER NOT NULL DEFAULT 0,
    deliveries_pending INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 0, lease_owner TEXT, lease_until INTEGER NOT NULL DEFAULT 0,
    wake_at INTEGER, last_push_at INTEGER, last_crawl_at INTEGER, last_delivery_at INTEGER,
    purges INTEGER NOT NULL DEFAULT 0, held_bytes INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX dispatch_wake ON dispatch (wake_at) WHERE wake_at IS NOT NULL;
  CREATE TABLE sweeps (crawler_id TEXT PRIMARY KEY, account_id TEXT NOT NULL) WITHOUT ROWID;

  CREATE TABLE jobs (
    rid TEXT PRIMARY KEY, crawler_id TEXT NOT NULL, account_id TEXT NOT NULL, url TEXT NOT NULL, method TEXT NOT NULL,
    body BLOB, content_type TEXT, parameters TEXT NOT NULL, callback_headers TEXT NOT NULL, queue_deadline INTEGER,
    created_at INTEGER NOT NULL, state TEXT NOT NULL, due_at INTEGER NOT NULL, retry INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0, epoch INTEGER, first_tried_at INTEGER, crashes INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0, gen INTEGER NOT NULL DEFAULT 0, last_failure TEXT, traceparent TEXT
  ) WITHOUT ROWID;
  CREATE INDEX jobs_next ON jobs (crawler_id, gen, due_at, rid) WHERE state <> 'running';
  CREATE INDEX jobs_retrying ON jobs (crawler_id, gen, due_at, rid) WHERE state = 'retrying';
  CREATE INDEX jobs_running ON jobs (crawler_id, epoch) WHERE state = 'running';
  CREATE INDEX jobs_deadline ON jobs (queue_deadline)
    WHERE queue_deadline IS NOT NULL AND state = 'waiting' AND first_tried_at IS NULL;

  CREATE TABLE pages (page_id INTEGER PRIMARY KEY, body BLOB NOT NULL);

  CREATE TABLE deliveries (
    rid TEXT PRIMARY KEY, crawler_id TEXT NOT NULL, page_id INTEGER NOT NULL, state TEXT NOT NULL, due_at INTEGER,
    attempt INTEGER NOT NULL, epoch INTEGER, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    url TEXT NOT NULL, pushed_url TEXT NOT NULL, cb_status INTEGER NOT NULL, original_status INTEGER NOT NULL,
    content_type TEXT NOT NULL, extras TEXT NOT NULL, callback_headers TEXT NOT NULL, size INTEGER NOT NULL,
    attempts TEXT NOT NULL DEFAULT '[]', traceparent TEXT
  ) WITHOUT ROWID;
  CREATE INDEX deliveries_due ON deliveries (crawler_id, due_at, rid) WHERE state = 'due';
  CREATE INDEX deliveries_sending ON deliveries (crawler_id, epoch) WHERE state = 'sending';
  CREATE INDEX deliveries_created ON deliveries (crawler_id, created_at);
  CREATE INDEX deliveries_expiry ON deliveries (expires_at);
  CREATE INDEX deliveries_failed ON deliveries (crawler_id, created_at, rid) WHERE state = 'failed';
  CREATE INDEX deliveries_failed_crawls ON deliveries (crawler_id, created_at, rid) WHERE cb_status <> 200;

  CREATE TABLE results (
    rid TEXT PRIMARY KEY, account_id TEXT NOT NULL, token_type TEXT NOT NULL, page_id INTEGER NOT NULL,
    stored_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, url TEXT NOT NULL, pushed_url TEXT NOT NULL,
    cb_status INTEGER NOT NULL, original_status INTEGER NOT NULL, content_type TEXT NOT NULL, extras TEXT NOT NULL,
    size INTEGER NOT NULL DEFAULT 0, crawler_id TEXT, seq INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  CREATE INDEX results_by_time ON results (account_id, token_type, stored_at, rid);
  CREATE INDEX results_by_url ON results (account_id, token_type, pushed_url, stored_at);
  CREATE INDEX results_by_seq ON results (account_id, token_type, seq, size);
  CREATE INDEX results_by_crawler ON results (crawler_id, seq, size) WHERE crawler_id IS NOT NULL;
  CREATE INDEX results_failed ON results (account_id, token_type, seq) WHERE cb_status <> 200;
  CREATE INDEX results_failed_by_crawler ON results (crawler_id, seq) WHERE cb_status <> 200;
  CREATE INDEX results_expiry ON results (expires_at);
  CREATE TABLE result_order (series TEXT NOT NULL, last INTEGER NOT NULL);
  INSERT INTO result_order VALUES (lower(hex(randomblob(8))), 0);

  CREATE TABLE history (
    crawler_id TEXT NOT NULL, day TEXT NOT NULL, counts TEXT NOT NULL, PRIMARY KEY (crawler_id, day)
  ) WITHOUT ROWID;

  CREATE TABLE push_requests (
    crawler_id TEXT NOT NULL, request_id TEXT NOT NULL, outcomes TEXT NOT NULL, expires_at INTEGER NOT NULL,
    PRIMARY KEY (crawler_id, request_id)
  ) WITHOUT ROWID;
  CREATE INDEX push_requests_expiry ON push_requests (expires_at);

  CREATE TABLE media (
    id TEXT PRIMARY KEY, content_type TEXT NOT NULL, bytes BLOB NOT NULL, expires_at INTEGER NOT NULL,
    account_id TEXT NOT NULL DEFAULT ''
  ) WITHOUT ROWID;
  CREATE INDEX media_expiry ON media (expires_at);

  CREATE TABLE notices (
    notice_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL,
    created_at INTEGER NOT NULL, due_at INTEGER NOT NULL, attempts INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX notices_due ON notices (due_at, notice_id);
  `,
  // A large page is written in pieces, each in a transaction of its own. Until its record is written
  // it is unfinished.
  `
  CREATE TABLE page_pieces (page_id INTEGER, piece INTEGER, body BLOB NOT NULL, PRIMARY KEY (page_id, piece));
  CREATE TABLE unfinished_pages (page_id INTEGER PRIMARY KEY);
  `,
  // Cookies that crawls share by name, for some minutes.
  `
  CREATE TABLE cookie_sessions (
    account_id TEXT NOT NULL, token_type TEXT NOT NULL, name TEXT NOT NULL, cookies TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, token_type, name)
  );
  CREATE INDEX cookie_sessions_by_use ON cookie_sessions (account_id, used_at);
  CREATE INDEX cookie_sessions_expiry ON cookie_sessions (used_at);
  `,
  // Where a job is sent and how soon among others of its host; the key that it alone has, what it
  // belongs to and what its client keeps with it.
  `
  ALTER TABLE jobs ADD COLUMN host TEXT NOT NULL DEFAULT '';
  ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 5;
  ALTER TABLE jobs ADD COLUMN unique_key TEXT;
  ALTER TABLE jobs ADD COLUMN batch_id TEXT;
  ALTER TABLE jobs ADD COLUMN metadata TEXT;
  UPDATE jobs SET host = host_of(url);
  `,
  'ALTER TABLE dispatch ADD COLUMN delivered INTEGER NOT NULL DEFAULT 0;',
  // The number of batches, see log-mark.ts.
  'CREATE TABLE commits (n INTEGER NOT NULL); INSERT INTO commits VALUES (0);',
  // The service time does not begin again before where it was, whatever the clock shows.
  `
  CREATE TABLE service_time (saved_ms INTEGER NOT NULL);
  INSERT INTO service_time VALUES (0);
  `,
  // Results that a client is reading to remove them.
  `
  ALTER TABLE results ADD COLUMN held_until INTEGER;
  CREATE INDEX results_held ON results (account_id, token_type) WHERE held_until IS NOT NULL;
  `,
  // The queue from host to host.
  `
  CREATE INDEX jobs_by_host ON jobs (crawler_id, gen, host, due_at, rid) WHERE state <> 'running';
  `,
  // What is known of the hosts of a crawler, and those that its owner has paused.
  `
  CREATE TABLE known_hosts (
    crawler_id TEXT PRIMARY KEY, process_id TEXT NOT NULL, hosts TEXT NOT NULL
  );
  ALTER TABLE crawlers ADD COLUMN paused_hosts TEXT NOT NULL DEFAULT '[]';
  `,
  // How the page of a result is compressed.
  "ALTER TABLE results ADD COLUMN coding TEXT NOT NULL DEFAULT 'gzip';",
  // Jobs of a later time.
  `
  ALTER TABLE jobs ADD COLUMN not_before INTEGER;
  CREATE INDEX jobs_scheduled ON jobs (crawler_id, gen, not_before)
    WHERE not_before IS NOT NULL AND state = 'waiting';
  `,
  // Which job has a unique key. Without an end, while it exists.
  `
  CREATE TABLE unique_keys (
    crawler_id TEXT NOT NULL, key TEXT NOT NULL, rid TEXT NOT NULL, gen INTEGER NOT NULL, until INTEGER,
    PRIMARY KEY (crawler_id, key)
  ) WITHOUT ROWID;
  CREATE INDEX unique_keys_expiry ON unique_keys (until) WHERE until IS NOT NULL;
  `,
  // The order of domain/priority.ts among the jobs of a host.
  `
  ALTER TABLE dispatch ADD COLUMN has_priorities INTEGER NOT NULL DEFAULT 0;
  DROP INDEX jobs_by_host;
  CREATE INDEX jobs_by_host ON jobs
    (crawler_id, gen, host, due_at - (priority - 5) * 3600000, rid, due_at) WHERE state <> 'running';
  `,
  // Jobs above the default priority, of all hosts.
  `
  CREATE INDEX jobs_urgent ON jobs (crawler_id, gen, due_at - (priority - 5) * 3600000, rid, due_at, host)
    WHERE state <> 'running' AND priority > 5;
  `,
  // Batches. The indexes cover what belongs to one, so everything else costs nothing more.
  `
  ALTER TABLE jobs ADD COLUMN batch TEXT;
  ALTER TABLE results ADD COLUMN batch_id TEXT;
  ALTER TABLE deliveries ADD COLUMN batch_id TEXT;
  CREATE INDEX jobs_by_batch ON jobs (batch_id, state, gen, not_before) WHERE batch_id IS NOT NULL;
  CREATE INDEX results_by_batch ON results (batch_id, seq, size, cb_status) WHERE batch_id IS NOT NULL;
  CREATE INDEX deliveries_by_batch ON deliveries (batch_id, created_at, rid, cb_status)
    WHERE batch_id IS NOT NULL;
  CREATE TABLE batches (
    batch_id TEXT PRIMARY KEY, crawler_id TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL,
    last_pushed_at INTEGER NOT NULL, last_ended_at INTEGER, closed_at INTEGER, completed_at INTEGER,
    accepted INTEGER NOT NULL DEFAULT 0, completed INTEGER NOT NULL DEFAULT 0, failures TEXT NOT NULL DEFAULT '{}',
    expires_at INTEGER NOT NULL, UNIQUE (crawler_id, name)
  ) WITHOUT ROWID;
  CREATE INDEX batches_newest ON batches (crawler_id, batch_id);
  CREATE INDEX batches_closed ON batches (batch_id) WHERE closed_at IS NOT NULL AND completed_at IS NULL;
  CREATE INDEX batches_expiry ON batches (expires_at);
  `,
  // What is kept to push a failed crawl again, and which one a job repeats.
  `
  ALTER TABLE jobs ADD COLUMN again_of TEXT;
  ALTER TABLE results ADD COLUMN request TEXT;
  ALTER TABLE deliveries ADD COLUMN request TEXT;
  CREATE INDEX results_failed_by_time ON results (crawler_id, stored_at, rid)
    WHERE cb_status <> 200 AND crawler_id IS NOT NULL;
  `,
  // Which requests of the same URL a stored page may serve.
  'ALTER TABLE results ADD COLUMN page_key TEXT;',
  // Tries in a row that failed, and which trouble was told by mail.
  `
  ALTER TABLE dispatch ADD COLUMN last_success_at INTEGER;
  ALTER TABLE dispatch ADD COLUMN crawl_failures INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE dispatch ADD COLUMN crawl_failing_since INTEGER;
  ALTER TABLE dispatch ADD COLUMN crawl_failed_at INTEGER;
  ALTER TABLE dispatch ADD COLUMN crawl_error TEXT;
  ALTER TABLE dispatch ADD COLUMN delivery_failures INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE dispatch ADD COLUMN delivery_failing_since INTEGER;
  ALTER TABLE dispatch ADD COLUMN delivery_failed_at INTEGER;
  ALTER TABLE dispatch ADD COLUMN delivery_error TEXT;
  ALTER TABLE known_hosts ADD COLUMN held_up TEXT;
  CREATE INDEX deliveries_retried ON deliveries (crawler_id, due_at, rid) WHERE state = 'due' AND attempt > 0;
  CREATE TABLE episodes (
    key TEXT PRIMARY KEY, since INTEGER NOT NULL, seen_at INTEGER NOT NULL, told INTEGER NOT NULL DEFAULT 0
  ) WITHOUT ROWID;
  `,
  // Who changed what.
  `
  CREATE TABLE audit (
    audit_id TEXT PRIMARY KEY, account_id TEXT NOT NULL, at INTEGER NOT NULL, actor TEXT NOT NULL,
    remote TEXT NOT NULL, request_id TEXT NOT NULL, method TEXT NOT NULL, crawler TEXT NOT NULL,
    changes TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX audit_newest ON audit (account_id, at, audit_id);
  CREATE INDEX audit_expiry ON audit (at);
  `,
  // Seals the sessions of the console.
  'CREATE TABLE secret (secret TEXT NOT NULL);',
  // The rungs of a ladder that have blocked a job.
  'ALTER TABLE jobs ADD COLUMN climbed TEXT;',
  // The tries of a job, and what callback URLs answered.
  `
  ALTER TABLE jobs ADD COLUMN tries TEXT;
  ALTER TABLE deliveries ADD COLUMN answers TEXT;
  `,
  // The numbers of a day as they were at some moments.
  `
  CREATE TABLE samples (
    crawler_id TEXT NOT NULL, at INTEGER NOT NULL, day TEXT NOT NULL, counts TEXT NOT NULL,
    queued INTEGER NOT NULL, PRIMARY KEY (crawler_id, at)
  ) WITHOUT ROWID;
  CREATE INDEX samples_by_time ON samples (at);
  `,
  // Pools of proxies that accounts have made, all of an account sealed together.
  `
  CREATE TABLE proxy_pools (
    account_id TEXT PRIMARY KEY, version INTEGER NOT NULL, sealed TEXT NOT NULL
  ) WITHOUT ROWID;
  `,
  // It is the sum of the other counters.
  'ALTER TABLE dispatch DROP COLUMN pushed;',
  // Rows that may be long are no longer in the tree of their keys, see decision 052.
  [
    withRowids('jobs', [
      "rid TEXT PRIMARY KEY NOT NULL, crawler_id TEXT NOT NULL, account_id TEXT NOT NULL, host TEXT NOT NULL DEFAULT ''",
      'state TEXT NOT NULL, due_at INTEGER NOT NULL, priority INTEGER NOT NULL DEFAULT 5, gen INTEGER NOT NULL DEFAULT 0',
      'retry INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, epoch INTEGER, first_tried_at INTEGER',
      'crashes INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL',
      'queue_deadline INTEGER, not_before INTEGER, batch_id TEXT, batch TEXT, unique_key TEXT, again_of TEXT',
      'last_failure TEXT, climbed TEXT, traceparent TEXT, method TEXT NOT NULL, content_type TEXT, url TEXT NOT NULL',
      'parameters TEXT NOT NULL, callback_headers TEXT NOT NULL, metadata TEXT, tries TEXT, body BLOB',
    ]),
    `
    CREATE INDEX jobs_next ON jobs (crawler_id, gen, due_at, rid) WHERE state <> 'running';
    CREATE INDEX jobs_retrying ON jobs (crawler_id, gen, due_at, rid) WHERE state = 'retrying';
    CREATE INDEX jobs_running ON jobs (crawler_id, epoch) WHERE state = 'running';
    CREATE INDEX jobs_deadline ON jobs (queue_deadline)
      WHERE queue_deadline IS NOT NULL AND state = 'waiting' AND first_tried_at IS NULL;
    CREATE INDEX jobs_by_batch ON jobs (batch_id, state, gen, not_before) WHERE batch_id IS NOT NULL;
    CREATE INDEX jobs_by_host ON jobs
      (crawler_id, gen, host, due_at - (priority - 5) * 3600000, rid, due_at) WHERE state <> 'running';
    CREATE INDEX jobs_urgent ON jobs (crawler_id, gen, due_at - (priority - 5) * 3600000, rid, due_at, host)
      WHERE state <> 'running' AND priority > 5;
    CREATE INDEX jobs_scheduled ON jobs (crawler_id, gen, not_before)
      WHERE not_before IS NOT NULL AND state = 'waiting';
    `,
    withRowids('deliveries', [
      'rid TEXT PRIMARY KEY NOT NULL, crawler_id TEXT NOT NULL, page_id INTEGER NOT NULL, state TEXT NOT NULL, due_at INTEGER',
      'attempt INTEGER NOT NULL, epoch INTEGER, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL',
      'cb_status INTEGER NOT NULL, original_status INTEGER NOT NULL, size INTEGER NOT NULL, batch_id TEXT',
      'traceparent TEXT, content_type TEXT NOT NULL, url TEXT NOT NULL, pushed_url TEXT NOT NULL',
      "attempts TEXT NOT NULL DEFAULT '[]', extras TEXT NOT NULL, callback_headers TEXT NOT NULL, answers TEXT, request TEXT",
    ]),
    `
    CREATE INDEX deliveries_due ON deliveries (crawler_id, due_at, rid) WHERE state = 'due';
    CREATE INDEX deliveries_retried ON deliveries (crawler_id, due_at, rid) WHERE state = 'due' AND attempt > 0;
    CREATE INDEX deliveries_sending ON deliveries (crawler_id, epoch) WHERE state = 'sending';
    CREATE INDEX deliveries_created ON deliveries (crawler_id, created_at, rid);
    CREATE INDEX deliveries_expiry ON deliveries (expires_at);
    CREATE INDEX deliveries_failed ON deliveries (crawler_id, created_at, rid) WHERE state = 'failed';
    CREATE INDEX deliveries_failed_crawls ON deliveries (crawler_id, created_at, rid) WHERE cb_status <> 200;
    CREATE INDEX deliveries_by_batch ON deliveries (batch_id, created_at, rid, cb_status) WHERE batch_id IS NOT NULL;
    `,
    withRowids('results', [
      'rid TEXT PRIMARY KEY NOT NULL, account_id TEXT NOT NULL, token_type TEXT NOT NULL, crawler_id TEXT, page_id INTEGER NOT NULL',
      'stored_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, held_until INTEGER, seq INTEGER NOT NULL DEFAULT 0',
      'cb_status INTEGER NOT NULL, original_status INTEGER NOT NULL, size INTEGER NOT NULL DEFAULT 0, batch_id TEXT',
      "coding TEXT NOT NULL DEFAULT 'gzip', content_type TEXT NOT NULL, page_key TEXT, url TEXT NOT NULL",
      'pushed_url TEXT NOT NULL, extras TEXT NOT NULL, request TEXT',
    ]),
    `
    CREATE INDEX results_by_time ON results (account_id, token_type, stored_at, rid);
    CREATE INDEX results_by_url ON results (account_id, token_type, pushed_url, stored_at, rid);
    CREATE INDEX results_by_seq ON results (account_id, token_type, seq, size, rid);
    CREATE INDEX results_by_crawler ON results (crawler_id, seq, size, rid) WHERE crawler_id IS NOT NULL;
    CREATE INDEX results_by_batch ON results (batch_id, seq, size, cb_status) WHERE batch_id IS NOT NULL;
    CREATE INDEX results_failed ON results (account_id, token_type, seq) WHERE cb_status <> 200;
    CREATE INDEX results_failed_by_crawler ON results (crawler_id, seq) WHERE cb_status <> 200;
    CREATE INDEX results_failed_by_time ON results (crawler_id, stored_at, rid)
      WHERE cb_status <> 200 AND crawler_id IS NOT NULL;
    CREATE INDEX results_expiry ON results (expires_at);
    CREATE INDEX results_held ON results (account_id, token_type) WHERE held_until IS NOT NULL;
    `,
    withRowids('media', [
      "id TEXT PRIMARY KEY NOT NULL, account_id TEXT NOT NULL DEFAULT '', expires_at INTEGER NOT NULL",
      'content_type TEXT NOT NULL, bytes BLOB NOT NULL',
    ]),
    'CREATE INDEX media_expiry ON media (expires_at);',
    withRowids('push_requests', [
      'crawler_id TEXT NOT NULL, request_id TEXT NOT NULL, expires_at INTEGER NOT NULL, outcomes TEXT NOT NULL',
    ]),
    `
    CREATE UNIQUE INDEX push_requests_by_id ON push_requests (crawler_id, request_id);
    CREATE INDEX push_requests_expiry ON push_requests (expires_at);
    `,
  ].join(''),
  // Due jobs are read by priority, so that those that are not due are not passed over.
  `
  DROP INDEX jobs_by_host;
  CREATE INDEX jobs_by_host ON jobs (crawler_id, gen, host, priority, due_at, rid) WHERE state <> 'running';
  DROP INDEX jobs_urgent;
  CREATE INDEX jobs_urgent ON jobs (crawler_id, gen, priority, due_at, rid, host)
    WHERE state <> 'running' AND priority > 5;
  `,
];

/** Makes the table anew, with rowids and these columns, and all of its rows. */
function withRowids(table: string, columns: readonly string[]): string {
  const names = columns.flatMap((some) => some.split(', ').map((each) => each.split(' ')[0]));
  return `
    CREATE TABLE new_${table} (${columns.join(', ')});
    INSERT INTO new_${table} (${names.join(', ')}) SELECT ${names.join(', ')} FROM ${table};
    DROP TABLE ${table};
    ALTER TABLE new_${table} RENAME TO ${table};
  `;
}
