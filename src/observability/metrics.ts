import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { TimedWork } from '../domain/tracing.ts';
import type { FairPool } from '../fairness/fair-pool.ts';
import type { DeliveryOutcome, JobOutcome, Store } from '../store/store.ts';
import type { StoreCall } from '../store/with-metrics.ts';
import type { CrawlThreads } from '../threads/crawl-threads.ts';
import { createBackupGauges, type MeasuredBackups } from './backup-gauges.ts';
import { createBrowserGauges, type MeasuredBrowser } from './browser-gauges.ts';
import { createCertificateGauge, type MeasuredCertificate } from './certificate-gauge.ts';
import { createLadderCounter, type MeasuredLadders } from './ladder-counter.ts';
import { createProcessGauges, type MeasuredProcess } from './process-gauges.ts';
import { createProxyGauges, type MeasuredProxies } from './proxy-gauges.ts';
import { createQueueGauges, type MeasuredQueues } from './queue-gauges.ts';
import { createTransactionCounters } from './transaction-counters.ts';

/** The process's measurements, for Prometheus. */
export interface Metrics {
  observeStoreCall(call: StoreCall): void;
  /** A crawl began `lagMs` after its job was due. */
  observeStart(lagMs: number): void;
  observeCrawl(outcome: JobOutcome, crawl: TimedWork): void;
  observeDelivery(outcome: DeliveryOutcome, delivery: TimedWork): void;
  observePush(accepted: number, refused: number): void;
  observeWrongToken(): void;
  observePostponedProbes(crawlers: number): void;
  observeRefused(refusal: string): void;
  /** Adds measurements that are taken from these parts whenever they are read; called once. */
  watch(parts: MeasuredParts): void;
  /** The exposition text and its media type. */
  read(): Promise<{ readonly text: string; readonly contentType: string }>;
}

/** The parts whose present state is measured. */
export interface MeasuredParts {
  readonly process: MeasuredProcess;
  readonly queues: MeasuredQueues;
  /** Undefined where the database is embedded. */
  readonly transactions: Store['transactions'];
  readonly browser: MeasuredBrowser;
  /** Undefined where the database is not embedded. */
  readonly backups: MeasuredBackups | undefined;
  /** Undefined where the port speaks no TLS. */
  readonly certificate: MeasuredCertificate | undefined;
  readonly dispatcher: () => ReturnType<Dispatcher['activity']>;
  readonly hosts: () => ReturnType<Dispatcher['troubledHosts']>;
  readonly threads: () => ReturnType<CrawlThreads['activity']>;
  readonly ladders: MeasuredLadders;
  /** Undefined where the operator has no proxies. */
  readonly proxies: MeasuredProxies | undefined;
  /** By name. */
  readonly pools: Readonly<Record<string, Pick<FairPool, 'used' | 'waiting'>>>;
}

/** Makes the measurements of one process. */
export function createMetrics(options: { readonly exemplars?: boolean } = {}): Metrics {
  const registry = new Registry();
  // Exemplars, which lead to a trace, exist in OpenMetrics only.
  const { exemplars = false } = options;
  if (exemplars) registry.setContentType(OPEN_METRICS as never);
  collectDefaultMetrics({ register: registry });
  const { storeSeconds, crawls, deliveries, pushes, wrongTokens, postponedProbes, refusals } =
    createCounters(registry);
  const durations = createDurations(registry, exemplars);
  const startLag = new Histogram({
    name: 'queued_crawler_start_lag_seconds',
    help: 'From the moment a queued URL was due to the start of its crawl.',
    buckets: LAG_BUCKETS,
    registers: [registry],
  });
  return {
    observeStoreCall({ operation, outcome, seconds }) {
      storeSeconds.observe({ operation, outcome }, seconds);
    },
    observeStart: (lagMs) => startLag.observe(lagMs / 1_000),
    observeCrawl(outcome, crawl) {
      durations.crawl(outcome.kind, crawl);
      const status = 'record' in outcome ? String(outcome.record.cbStatus) : '';
      crawls.inc({ end: outcome.kind, cb_status: status });
    },
    observeWrongToken: () => wrongTokens.inc(),
    observePostponedProbes: (crawlers) => postponedProbes.inc(crawlers),
    observeDelivery({ kind }, delivery) {
      durations.delivery(kind, delivery);
      deliveries.inc({ end: kind });
    },
    observePush(accepted, refused) {
      if (accepted > 0) pushes.inc({ end: 'accepted' }, accepted);
      if (refused > 0) pushes.inc({ end: 'refused' }, refused);
    },
    observeRefused: (refusal) => refusals.inc({ refusal }),
    watch: (parts) => createGauges(registry, parts),
    read: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  };
}

const OPEN_METRICS = Registry.OPENMETRICS_CONTENT_TYPE;

/** Seconds: from a fast page to the longest crawl. */
const CRAWL_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 90, 300];
/** Seconds: within the 200 ms that an endpoint has, and beyond them. */
const DELIVERY_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 5, 30];

/** Seconds: from an idle crawler to a long queue. */
const LAG_BUCKETS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1_800, 7_200];

/** The durations of crawls and deliveries by their end. */
function createDurations(registry: Registry, enableExemplars: boolean) {
  const common = { labelNames: ['end'], registers: [registry], enableExemplars };
  const crawl = new Histogram({
    ...common,
    name: 'queued_crawler_crawl_seconds',
    help: 'Duration of crawls of queued URLs, redirects and waits within a page included.',
    buckets: CRAWL_BUCKETS,
  });
  const delivery = new Histogram({
    ...common,
    name: 'queued_crawler_delivery_seconds',
    help: 'Duration of webhook delivery attempts.',
    buckets: DELIVERY_BUCKETS,
  });
  const observe =
    (histogram: Histogram) =>
    (end: string, { seconds: value, traceparent }: TimedWork): void => {
      if (!enableExemplars) histogram.observe({ end }, value);
      else histogram.observe({ labels: { end }, value, exemplarLabels: traceLabels(traceparent) });
    };
  return { crawl: observe(crawl), delivery: observe(delivery) };
}

/** The labels of an exemplar; none for work that is in no sampled trace. */
function traceLabels(traceparent: string | undefined): Record<string, string> {
  const [, traceId, spanId, flags] = traceparent?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined || flags !== '01') return {};
  return { trace_id: traceId, span_id: spanId };
}

/** What is counted when it happens. */
function createCounters(registry: Registry) {
  const registers = [registry];
  return {
    storeSeconds: new Histogram({
      name: 'queued_crawler_store_call_seconds',
      help: 'Duration of calls to the database.',
      labelNames: ['operation', 'outcome'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    crawls: new Counter({
      name: 'queued_crawler_crawls_total',
      help: 'Crawls that ended: with a result of this cb_status, to be tried again, or given back.',
      labelNames: ['end', 'cb_status'],
      registers,
    }),
    deliveries: new Counter({
      name: 'queued_crawler_delivery_attempts_total',
      help: 'Webhook delivery attempts by their end.',
      labelNames: ['end'],
      registers,
    }),
    pushes: new Counter({
      name: 'queued_crawler_pushed_urls_total',
      help: 'URLs pushed.',
      labelNames: ['end'],
      registers,
    }),
    wrongTokens: new Counter({
      name: 'queued_crawler_wrong_tokens_total',
      help: 'Calls refused because nobody has their access token.',
      registers,
    }),
    postponedProbes: new Counter({
      name: 'queued_crawler_probes_postponed_total',
      help: 'Probes of callback URLs that were made later because of a quota, by crawler.',
      registers,
    }),
    refusals: new Counter({
      name: 'queued_crawler_refused_connections_total',
      help: 'Connections that crawls and callbacks were refused for where they led.',
      labelNames: ['refusal'],
      registers,
    }),
  };
}

/** What is read from the parts when the measurements are read. */
function createGauges(registry: Registry, parts: MeasuredParts): void {
  const { dispatcher, threads, pools } = parts;
  createProcessGauges(registry, parts.process);
  createQueueGauges(registry, parts.queues);
  createBrowserGauges(registry, parts.browser);
  if (parts.backups !== undefined) createBackupGauges(registry, parts.backups);
  if (parts.certificate !== undefined) createCertificateGauge(registry, parts.certificate);
  if (parts.transactions !== undefined) createTransactionCounters(registry, parts.transactions);
  createLadderCounter(registry, parts.ladders);
  if (parts.proxies !== undefined) createProxyGauges(registry, parts.proxies);
  const registers = [registry];
  new Gauge({
    name: 'queued_crawler_active',
    help: 'What this process is working on: crawlers, crawls, deliveries; jobs read ahead (buffered), starts and ends to write (unwritten).',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, count] of Object.entries(dispatcher())) this.set({ kind }, count);
    },
  });
  new Gauge({
    name: 'queued_crawler_hosts',
    help: 'Hosts in trouble, as this process knows: not reached (away), or asking for fewer requests (slow).',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(parts.hosts())) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'queued_crawler_crawl_threads',
    help: 'Crawl threads that run.',
    registers,
    collect() {
      this.set(threads().threads);
    },
  });
  new Counter({
    name: 'queued_crawler_crawl_threads_replaced_total',
    help: 'Crawl threads that did not answer, outgrew their memory or ended, and were replaced.',
    registers,
    collect() {
      this.reset();
      this.inc(threads().replaced);
    },
  });
  const poolGauge = (name: string, help: string, measure: 'used' | 'waiting'): void => {
    new Gauge({
      name,
      help,
      labelNames: ['pool'],
      registers,
      collect() {
        for (const [pool, { [measure]: value }] of Object.entries(pools)) this.set({ pool }, value);
      },
    });
  };
  poolGauge('queued_crawler_pool_used', 'What is in use of what tenants share.', 'used');
  poolGauge('queued_crawler_pool_waiting', 'Claims that wait for their share.', 'waiting');
}
