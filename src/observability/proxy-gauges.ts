import { Counter, Gauge, type Registry } from 'prom-client';
import type { ProxyHostReport, ProxyReport } from '../domain/proxy-pools.ts';

/** What the numbers of proxies are read from. */
export interface MeasuredProxies {
  list(): readonly ProxyReport[];
  /** Hosts that were crawled through them, by pool: a bounded number, and `other` for the others. */
  hostSeries(): readonly ProxyHostReport[];
  /** Crawls that found no proxy, by pool. */
  waits(): Iterable<readonly [pool: string, count: number]>;
}

/** Proxies of a pool that have series of their own; all others count as `other`. */
const MAX_NAMED = 100;

const NUMBERS = [
  ['pages', 'queued_crawler_proxy_pages_total', 'Pages that came through a proxy.'],
  ['blocks', 'queued_crawler_proxy_blocks_total', 'Block pages and 429 through a proxy.'],
  ['failures', 'queued_crawler_proxy_failures_total', 'Crawls that a proxy has failed.'],
  ['received', 'queued_crawler_proxy_received_bytes_total', 'Bytes received through a proxy.'],
  ['sent', 'queued_crawler_proxy_sent_bytes_total', 'Bytes sent through a proxy.'],
] as const;

const HOST_NUMBERS = [
  [
    'pages',
    'queued_crawler_proxy_host_pages_total',
    'Pages of a host through the proxies of a pool.',
  ],
  ['blocks', 'queued_crawler_proxy_host_blocks_total', 'Block pages and 429 of a host there.'],
  [
    'failures',
    'queued_crawler_proxy_host_failures_total',
    'Crawls of a host that a proxy has failed.',
  ],
  ['bytes', 'queued_crawler_proxy_host_bytes_total', 'Bytes of a host, in both directions.'],
] as const;

/** One reading for all metrics of a scrape. */
function oncePerScrape<Rows>(read: () => Rows): () => Rows {
  let last: Rows | undefined;
  return () => {
    if (last === undefined) setImmediate(() => (last = undefined));
    return (last ??= read());
  };
}

/** Makes the numbers of proxies; none without pools. */
export function createProxyGauges(registry: Registry, proxies: MeasuredProxies): void {
  const registers = [registry];
  const list = oncePerScrape(() => proxies.list());
  const hostSeries = oncePerScrape(() => proxies.hostSeries());
  new Gauge({
    name: 'queued_crawler_proxies',
    help: 'Proxies of each pool that may be used, and that have a cool-down for everyone.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      this.reset();
      for (const { pool, trouble } of list()) {
        this.inc({ pool, state: trouble === undefined ? 'usable' : 'cooling' });
      }
    },
  });
  for (const [number, name, help] of NUMBERS) {
    new Counter({
      name,
      help,
      labelNames: ['pool', 'proxy'],
      registers,
      collect() {
        this.reset();
        for (const { pool, label, index, [number]: value } of list()) {
          if (value > 0) this.inc({ pool, proxy: index < MAX_NAMED ? label : 'other' }, value);
        }
      },
    });
  }
  for (const [number, name, help] of HOST_NUMBERS) {
    new Counter({
      name,
      help: `${help} Up to 100 hosts; all others are "other".`,
      labelNames: ['pool', 'host'],
      registers,
      collect() {
        this.reset();
        for (const { pool, host, [number]: value } of hostSeries()) {
          if (value > 0) this.inc({ pool, host }, value);
        }
      },
    });
  }
  new Counter({
    name: 'queued_crawler_proxy_waits_total',
    help: 'Crawls that were put off because no proxy of their pool could be used.',
    labelNames: ['pool'],
    registers,
    collect() {
      this.reset();
      for (const [pool, count] of proxies.waits()) this.inc({ pool }, count);
    },
  });
}
