import type { MongoClientOptions } from 'mongodb';

/** How long a call waits for an unavailable database, or for a free connection, before it fails. */
const SELECTION_MS = 3_000;
const QUEUE_MS = 10_000;
const SOCKET_MS = 60_000;
/**
 * How often the driver asks the server whether it is there, and how long it waits for the answer. Without
 * one it ends all calls that wait for that server: a frozen machine or a cut network closes no connection.
 */
const HEARTBEAT_MS = 5_000;
const CONNECT_MS = 10_000;
/**
 * A write fails if no majority has taken it after this time, so that a replica set without a
 * majority blocks nobody.
 */
const MAJORITY_MS = 10_000;
/**
 * Connections of one process. Its writes are batches; with more connections they would wait for
 * each other in the server.
 */
const CONNECTIONS = 50;

/**
 * The options that the store's guarantees depend on. They hold whatever the connection string says.
 */
export const clientOptions = {
  appName: 'queued-crawler',
  // Leases, counters and claims are compared with the last write, which a secondary may not have
  // yet.
  readPreference: 'primary',
  readConcern: { level: 'local' },
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: MAJORITY_MS },
  retryWrites: true,
  retryReads: true,
  serverSelectionTimeoutMS: SELECTION_MS,
  waitQueueTimeoutMS: QUEUE_MS,
  socketTimeoutMS: SOCKET_MS,
  heartbeatFrequencyMS: HEARTBEAT_MS,
  connectTimeoutMS: CONNECT_MS,
  maxPoolSize: CONNECTIONS,
  ignoreUndefined: true,
} as const satisfies MongoClientOptions;

/**
 * For writes of which a rollback loses or doubles nothing that anyone was told: see decision 006.
 */
export const quickly = { writeConcern: { w: 1 } } as const;

const OURS = new Set(
  `readPreference readPreferenceTags maxStalenessSeconds readConcernLevel w journal j wtimeout wtimeoutMS retryWrites retryReads
  timeoutMS serverSelectionTimeoutMS waitQueueTimeoutMS socketTimeoutMS heartbeatFrequencyMS connectTimeoutMS
  maxPoolSize`
    .toLowerCase()
    .split(/\s+/),
);

/** The connection string without the options that {@link clientOptions} sets. */
export function withoutOurs(uri: string): string {
  const [place = '', query] = uri.split('?', 2);
  if (query === undefined) return uri;
  const kept = query.split('&').filter((each) => {
    const [name = ''] = each.split('=', 1);
    return !OURS.has(name.toLowerCase());
  });
  return kept.length === 0 ? place : `${place}?${kept.join('&')}`;
}
