function limit(text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= 0 && number <= Number.MAX_SAFE_INTEGER)) {
    throw new Error(`must be a whole number from 0 (no limit) to 2^53 - 1, not "${text}"`);
  }
  return number;
}

/**
 * The limits of accounts that have none of their own. docs/decisions/009-quotas.md gives the
 * reasons for the defaults.
 */
export const quotaSettings = {
  accountCrawlers: {
    variable: 'ACCOUNT_CRAWLERS',
    fallback: '10000',
    parse: limit,
    meaning:
      'Crawlers of an account. This and the next six can be set for each account; 0 is no limit. The console, searches and lists with activity have the first 10,000 by name.',
  },
  accountConcurrency: {
    variable: 'ACCOUNT_CONCURRENCY',
    fallback: '200000',
    parse: limit,
    meaning: 'Concurrency of all crawlers of an account together.',
  },
  accountStorageBytes: {
    variable: 'ACCOUNT_STORAGE_BYTES',
    fallback: '1099511627776',
    parse: limit,
    meaning:
      'Bytes of stored results and kept deliveries of an account, at which its pushes and crawls pause.',
  },
  accountQueueBytes: {
    variable: 'ACCOUNT_QUEUE_BYTES',
    fallback: '10737418240',
    parse: limit,
    meaning: 'Bytes of queued URLs, bodies and headers of an account.',
  },
  accountRequestsPerSecond: {
    variable: 'ACCOUNT_REQUESTS_PER_SECOND',
    fallback: '100',
    parse: limit,
    meaning:
      'Calls a second of an account other than pushes, in each process; ten seconds’ worth at once.',
  },
  accountProbesPerMinute: {
    variable: 'ACCOUNT_PROBES_PER_MINUTE',
    fallback: '2400',
    parse: limit,
    meaning:
      'Probes a minute of the callback URLs of an account, in each process; further ones are made later, in turn.',
  },
  accountReplaysPerHour: {
    variable: 'ACCOUNT_REPLAYS_PER_HOUR',
    fallback: '100000',
    parse: limit,
    meaning: 'Deliveries of an account made again by replay, an hour.',
  },
} as const;
