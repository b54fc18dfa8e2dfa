/** What a process of the service says about itself. */
export interface ProcessReport {
  /** Unique: host, process id and a random part. */
  readonly processId: string;
  /** See `osProcessName`; absent where its system does not tell. */
  readonly osProcess?: string;
  readonly role: 'all' | 'api' | 'worker';
  readonly version: string;
  readonly startedAt: Date;
  readonly reportedAt: Date;
  /** Crawlers that it dispatches. */
  readonly crawlers: number;
  /** Crawls and deliveries in flight. */
  readonly crawls: number;
  readonly deliveries: number;
  readonly browserPages: number;
  /** Resident memory of the process, Chromium not included. */
  readonly memoryBytes: number;
  /** Processor time since the report before, in cores. */
  readonly cpuCores: number;
  /** The part of the time since the report before in which the main thread was busy, 0 to 1. */
  readonly eventLoopUse: number;
}

/** The database that the service keeps everything in. */
export interface Database {
  readonly kind: 'sqlite' | 'mongodb';
  readonly version: string;
}
