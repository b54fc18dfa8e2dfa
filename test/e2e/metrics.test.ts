import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { hasPrometheus, startPrometheus } from '../support/prometheus.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

const PROMETHEUS = join(import.meta.dirname, '..', '..', 'deploy', 'prometheus');
const DASHBOARD = join(PROMETHEUS, '..', 'grafana', 'queued-crawler.json');
const TOKEN = 'metrics-token-for-tests';

async function metricsOf(app: TestApp, token: string): Promise<string> {
  const reply = await app.rest('GET', '/metrics', undefined, { authorization: `Bearer ${token}` });
  expect(reply.status).toBe(200);
  return reply.text;
}

/** One crawler with a webhook that delivers, and one that is paused and has URLs waiting. */
async function work(app: TestApp, site: string, callbackUrl: string): Promise<void> {
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: callbackUrl });
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'held' });
  await app.rest('POST', `/crawler/${NORMAL}/held/pause`);
  for (const crawler of ['hook', 'held']) {
    const items = [{ url: `${site}/page/1` }, { url: `${site}/page/2` }, { url: 'ftp://a' }];
    await app.rest('POST', `/crawler/${NORMAL}/${crawler}/push_batch`, { items });
  }
  await app.rest('GET', '/?token=a-wrong-token-of-nobody&url=x');
}

test('METRICS_TOKEN or the admin token opens /metrics where the first is set', async () => {
  await using app = await startApp({ env: { METRICS_TOKEN: TOKEN } });
  expect((await app.rest('GET', '/metrics')).status).toBe(401);
  const withClients = { authorization: `Bearer ${NORMAL}` };
  expect((await app.rest('GET', '/metrics', undefined, withClients)).status).toBe(401);
  expect(await metricsOf(app, TOKEN)).toContain('queued_crawler_info{version="');
  expect(await metricsOf(app, ADMIN)).toContain('queued_crawler_database_up 1');
});

test('queues are shown as sums, and by crawler where that is asked for, up to a number', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  await work(app, site.url, receiver.url);
  await receiver.until(2);
  const text = await metricsOf(app, '');
  expect(text).toMatch(/^queued_crawler_queue_urls\{state="waiting"\} 2$/m);
  expect(text).not.toContain('crawler="held"');
  await app.stop();
  await using again = await startApp({ dataDir: app.dataDir, env: { METRICS_CRAWLERS: '1' } });
  const labelled = await metricsOf(again, '');
  const labels = 'account="default",crawler="held"';
  expect(labelled).toContain(`queued_crawler_crawler_queue_urls{${labels},state="waiting"} 2`);
  expect(labelled).toMatch(
    new RegExp(`queued_crawler_crawler_queue_oldest_due_seconds\\{${labels}\\} \\d`),
  );
  expect(labelled).not.toContain('crawler="hook"');
});

test('the dispatcher tells how late crawls start, what it has read ahead and what it has not written', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  await work(app, site.url, receiver.url);
  await receiver.until(2);
  const text = await metricsOf(app, '');
  expect(text).toMatch(/^queued_crawler_start_lag_seconds_count 2$/m);
  expect(text).toMatch(/^queued_crawler_active\{kind="buffered"\} 0$/m);
  expect(text).toMatch(/^queued_crawler_active\{kind="unwritten"\} \d$/m);
});

test('what has to stay free of the disk is told next to what is free', async () => {
  await using app = await startApp({ env: { MIN_FREE_BYTES: '5000000' } });
  const text = await metricsOf(app, '');
  expect(text).toMatch(/^queued_crawler_disk_free_bytes \d+$/m);
  expect(text).toMatch(/^queued_crawler_disk_min_free_bytes 5000000$/m);
});

test('when the last backup was made, and how often one is to be made', async () => {
  const seconds = async (app: TestApp): Promise<number> => {
    const text = await metricsOf(app, '');
    return Number(/^queued_crawler_last_backup_timestamp_seconds (.+)$/m.exec(text)?.[1]);
  };
  await using app = await startApp({ env: { BACKUP_EVERY_HOURS: '0' } });
  expect(await seconds(app)).toBe(0);
  expect(await metricsOf(app, '')).toMatch(/^queued_crawler_backup_interval_seconds 0$/m);
  await app.stop();
  const env = { BACKUP_EVERY_HOURS: '24' };
  await using again = await startApp({ dataDir: app.dataDir, env });
  expect(await metricsOf(again, '')).toMatch(/^queued_crawler_backup_interval_seconds 86400$/m);
  await eventually(async () => {
    const authorization = `Bearer ${ADMIN}`;
    const { json } = await again.rest('GET', '/backup', undefined, { authorization });
    const madeAt = Date.parse(json.backups[0]?.made_at) / 1_000;
    expect(await seconds(again)).toBeCloseTo(madeAt, 2);
  });
});

test('durations lead to their traces where there are traces', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using otlp = await startOtlpReceiver();
  await using app = await startApp({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url } });
  await work(app, site.url, receiver.url);
  await receiver.until(2);
  await eventually(async () => {
    expect(await metricsOf(app, '')).toMatch(
      /queued_crawler_delivery_seconds_bucket\{.*\} \d+ # \{trace_id="[\da-f]{32}",span_id="[\da-f]{16}"\}/,
    );
  });
});

test.skipIf(!hasPrometheus)(
  'promtool accepts the metrics, the rules and what the rules say',
  async () => {
    const promtool = (args: readonly string[], input = '') => {
      const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
      return { status, text: stdout + stderr };
    };
    await using app = await startApp();
    const checked = promtool(['check', 'metrics'], await metricsOf(app, ''));
    // Those of the runtime (nodejs_, process_) come from a library.
    expect(checked.text.split('\n').filter((line) => line.includes('queued_crawler'))).toEqual([]);
    expect(promtool(['check', 'config', join(PROMETHEUS, 'prometheus.yml')]).status).toBe(0);
    const rules = promtool(['test', 'rules', join(PROMETHEUS, 'alerts.test.yml')]);
    expect(rules.status, rules.text).toBe(0);
  },
);

test.skipIf(!hasPrometheus)(
  'each query of the dashboard and each alert works on what Prometheus scrapes',
  async () => {
    await using site = await startSite();
    await using receiver = await startReceiver();
    await using app = await startApp({
      env: { METRICS_TOKEN: TOKEN, METRICS_CRAWLERS: '10', BACKUP_EVERY_HOURS: '1' },
    });
    await work(app, site.url, receiver.url);
    await receiver.until(2);
    await using prometheus = await startPrometheus({
      target: `127.0.0.1:${app.port}`,
      token: TOKEN,
      rules: join(PROMETHEUS, 'alerts.yml'),
    });
    const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
      panels: { title: string; targets?: { expr: string }[] }[];
    };
    const queries = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        title,
        expr: expr.replaceAll('$job', 'queued-crawler').replaceAll('$__rate_interval', '30s'),
      })),
    );
    expect(queries.length).toBeGreaterThan(20);
    // Nothing was refused for its address: a panel that is empty as long as all is well.
    const maybeEmpty = (expr: string): boolean => expr.includes('refused_connections');
    await eventually(async () => {
      const empty: string[] = [];
      for (const { title, expr } of queries) {
        const samples = await prometheus.query(expr);
        if (samples.length === 0 && !maybeEmpty(expr)) empty.push(`${title}: ${expr}`);
      }
      expect(empty).toEqual([]);
    });
    expect(await prometheus.rules()).toHaveLength(16);
    expect(await prometheus.query('up')).toMatchObject([{ value: [expect.any(Number), '1'] }]);
  },
);
