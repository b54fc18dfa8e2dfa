/** What is measured: pages that are kept, or passed on. */
export type Mode = 'storage' | 'webhook';

/** Pages out of a backlog. */
export interface Crawl {
  readonly mode: Mode;
  readonly concurrency: number;
  readonly pages: number;
  readonly site: string;
  readonly hook: string;
}

/** How it went. */
export interface CrawlFigure {
  readonly perSecond: number;
  /** Processor seconds of the crawling process for 1,000 pages. */
  readonly cpuPerThousand: number;
  /** Commands to MongoDB for each page. */
  readonly commandsPerPage?: number;
}

/** Milliseconds. */
export interface Latency {
  readonly median: number;
  readonly p99: number;
}

/** One that crawls a backlog, in a process of its own. */
export interface Contender extends AsyncDisposable {
  readonly name: string;
  crawl(crawl: Crawl): Promise<CrawlFigure>;
  /** How long a push of one URL takes, while several connections push. */
  pushLatency?(pushes: number): Promise<Latency>;
  /** How long a URL that is pushed to an idle queue takes to be asked for. */
  startLatency?(pushes: number, site: string, startOf: StartOf): Promise<Latency>;
}

/** Resolves with the time, in ms since 1970, at which a path was asked for. */
export type StartOf = (path: string) => Promise<number>;

/** The median and the 99th percentile of some times. Throws when the list is empty. */
export function latencyOf(times: readonly number[]): Latency {
  const sorted = times.toSorted((left, right) => left - right);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  if (sorted.length === 0) throw new Error('nothing was measured');
  return { median: at(0.5), p99: at(0.99) };
}

/** The time in ms since 1970, with fractions, which is the same in all processes. */
export const now = (): number => performance.timeOrigin + performance.now();

/** Connections that push at once where a push is measured. */
export const PUSHERS = 16;
