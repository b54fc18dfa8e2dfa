/** The limits of a client's time and memory. Times in milliseconds. */
export interface EdgeLimits {
  /** For the first bytes and the headers of a request. */
  readonly headersTimeoutMs: number;
  /** For a whole HTTP/1 request, body included. */
  readonly requestTimeoutMs: number;
  /** How long an unused HTTP/1 connection is kept. */
  readonly keepAliveTimeoutMs: number;
  /** How long an HTTP/2 connection without streams is kept. */
  readonly idleSessionTimeoutMs: number;
  readonly maxHeaderBytes: number;
  /** Streams at once on one HTTP/2 connection. */
  readonly maxStreams: number;
  /** RPC requests at once whose message has not arrived and whose caller is unknown. */
  readonly maxHalfOpen: number;
  /** Of these, from one address. */
  readonly maxHalfOpenPerAddress: number;
  /** Calls of unknown callers that wait for their start. */
  readonly maxStrangers: number;
  /** Of these, from one address. */
  readonly maxStrangersPerAddress: number;
  /** How long a client may read nothing of a reply that has been written. */
  readonly stallTimeoutMs: number;
  /** Connections at once. */
  readonly maxConnections: number;
  /** Connections at once from one address other than this machine. */
  readonly maxPerAddress: number;
}

/** The limits that apply unless others are given. */
export const DEFAULT_EDGE_LIMITS: EdgeLimits = {
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 120_000,
  // Longer than common load balancers keep theirs.
  keepAliveTimeoutMs: 65_000,
  idleSessionTimeoutMs: 300_000,
  // Three times the longest URL, percent-encoded.
  maxHeaderBytes: 65_536,
  maxStreams: 250,
  maxHalfOpen: 1_000,
  maxHalfOpenPerAddress: 250,
  maxStrangers: 2_000,
  maxStrangersPerAddress: 1_000,
  stallTimeoutMs: 30_000,
  maxConnections: 10_000,
  maxPerAddress: 1_000,
};
