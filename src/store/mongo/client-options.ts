import type { MongoClientOptions } from 'mongodb';

/** A request waits this long for a database that is away, or for a free connection, then it is told so. */
const SELECTION_MS = 3_000;
const QUEUE_MS = 10_000;
const SOCKET_MS = 60_000;
/** A write that a majority has not taken after this is refused, so that a set that has lost its majority stalls nobody. */
const MAJORITY_MS = 10_000;
/** Connections of one process. Its writes are batches; more of them at once only wait for each other in the server. */
const CONNECTIONS = 50;

/** What the store's promises rest on. It holds whatever the connection string says. */
export const clientOptions = {
  appName: 'queued-crawler',
  // Leases, counters and claims are compared with what was written last: a secondary may not have it yet.
  readPreference: 'primary',
  readConcern: { level: 'local' },
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: MAJORITY_MS },
  retryWrites: true,
  retryReads: true,
  serverSelectionTimeoutMS: SELECTION_MS,
  waitQueueTimeoutMS: QUEUE_MS,
  socketTimeoutMS: SOCKET_MS,
  maxPoolSize: CONNECTIONS,
  ignoreUndefined: true,
} as const satisfies MongoClientOptions;

const OURS = new Set(
  `readPreference readPreferenceTags maxStalenessSeconds readConcernLevel w journal j wtimeout wtimeoutMS retryWrites retryReads
  timeoutMS serverSelectionTimeoutMS waitQueueTimeoutMS socketTimeoutMS maxPoolSize`
    .toLowerCase()
    .split(/\s+/),
);

/** The connection string without what {@link clientOptions} decides. */
export function withoutOurs(uri: string): string {
  const [place = '', query] = uri.split('?', 2);
  if (query === undefined) return uri;
  const kept = query.split('&').filter((each) => {
    const [name = ''] = each.split('=', 1);
    return !OURS.has(name.toLowerCase());
  });
  return kept.length === 0 ? place : `${place}?${kept.join('&')}`;
}
