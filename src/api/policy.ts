import type { DescMethod } from '@bufbuild/protobuf';
import type { Call } from './method.ts';

/** Who may call: anybody, the owner of a token, or the operator with the admin token. */
export type Access = 'public' | 'account' | 'admin';

/** The limits of a method's request, and who may call it. */
export interface MethodPolicy {
  readonly access: Access;
  /** Longest request message, unpacked. */
  readonly maxBytes: number;
  /** Most fields of a request message, at all levels together. */
  readonly maxFields: number;
  /** Whether a call takes one of the slots that accounts share. */
  readonly takesSlot: boolean;
  /** Memory that is reserved while the method reads, in bytes; 0 for what reads little. */
  readonly readBytes: number;
}

const KIB = 1024;

/**
 * A part of a list has at most `LISTING_CHARACTERS`, which are in memory as rows, as a message and
 * encoded; the statistics of thousands of crawlers are as large.
 */
const LIST_BYTES = 16 * KIB * KIB;

/**
 * The longest message of a call whose token is in the message: it is read before the caller is
 * known. Longer ones need `authorization: Bearer`, or over REST the token in path or query.
 */
export const MAX_UNKNOWN_CALLER_BYTES = 64 * KIB;

const small = { maxBytes: 64 * KIB, maxFields: 4_096 };
const ordinary: MethodPolicy = { access: 'account', ...small, takesSlot: true, readBytes: 0 };
const unauthenticated: MethodPolicy = {
  access: 'public',
  maxBytes: 4 * KIB,
  maxFields: 64,
  takesSlot: false,
  readBytes: 0,
};
// A body for the target is at most 1 MiB, a third longer in JSON. Crawls take long, and have limits
// of their own.
const oneUrl: MethodPolicy = {
  access: 'account',
  maxBytes: 2 * KIB * KIB,
  maxFields: 4_096,
  takesSlot: false,
  readBytes: 0,
};
// 1,000 URLs of 8 KiB with their parameters. Decoding one takes about 100 ms of the main thread.
const manyUrls: MethodPolicy = { ...oneUrl, maxBytes: 10 * KIB * KIB, maxFields: 100_000 };

const services: Readonly<Record<string, MethodPolicy>> = {
  'grpc.health.v1.Health': unauthenticated,
  'grpc.reflection.v1.ServerReflection': unauthenticated,
  'grpc.reflection.v1alpha.ServerReflection': unauthenticated,
  'queuedcrawler.v1.AccountService': { ...ordinary, access: 'admin' },
  // Trying mail server and browser takes long.
  'queuedcrawler.v1.OperatorService': { ...ordinary, access: 'admin', takesSlot: false },
};

const pushes: Readonly<Record<string, MethodPolicy>> = {
  Push: oneUrl,
  Crawl: oneUrl,
  PushBatch: manyUrls,
  PushStream: manyUrls,
};

/** It waits for a callback URL, which may take as long as a delivery. */
const waitsForOthers: ReadonlySet<string> = new Set(['TestDelivery']);

const longReads: ReadonlySet<string> = new Set([
  'ListCrawlers',
  'ListAsyncJobs',
  'ListJobs',
  'ListResults',
  'ListDeliveries',
  'ListFailures',
  'ListHosts',
  'GetActivity',
  'GetStats',
]);

/** The policy of a method; one that is not listed needs a token and takes small messages. */
export function methodPolicy(desc: DescMethod): MethodPolicy {
  const service = desc.parent.typeName;
  if (service === 'queuedcrawler.v1.PushService') return pushes[desc.name] ?? ordinary;
  if (waitsForOthers.has(desc.name)) return { ...ordinary, takesSlot: false };
  if (longReads.has(desc.name)) return { ...ordinary, readBytes: LIST_BYTES };
  return services[service] ?? ordinary;
}

/** The longest message that is read of a call, depending on whether the caller is known. */
export function maxBytesFor(policy: MethodPolicy, call: Pick<Call, 'caller'>): number {
  if (policy.access !== 'account' || call.caller !== undefined) return policy.maxBytes;
  return Math.min(policy.maxBytes, MAX_UNKNOWN_CALLER_BYTES);
}
