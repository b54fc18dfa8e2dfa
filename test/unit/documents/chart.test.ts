import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { helmProgram } from '../../../scripts/helm/helm-program.ts';
import { CHART, manifestFile, renderChart } from '../../../scripts/helm/render-chart.ts';
import { settings } from '../../../src/config/settings.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const FILE = readFileSync(join(ROOT, 'deploy', 'kubernetes', 'queued-crawler.yaml'), 'utf8');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
};

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // oxlint-disable-next-line typescript/no-explicit-any -- each kind has a shape of its own
  readonly spec: any;
}

const parse = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);

/** Throws unless the manifest is valid by the schema of its kind. */
async function validate(manifest: Manifest): Promise<void> {
  const path = `kubernetes-models/${manifest.apiVersion}`;
  const models = (await import(/* @vite-ignore */ path)) as Record<
    string,
    new (
      manifest: unknown,
    ) => { validate(): void }
  >;
  const Model = models[manifest.kind];
  if (Model === undefined) throw new Error(`there is no ${manifest.apiVersion} ${manifest.kind}`);
  new Model(manifest).validate();
  expect(() => new Model({ ...manifest, spec: 'wrong' }).validate()).toThrow();
}

/** Checks manifests that belong together. */
async function check(manifests: readonly Manifest[]): Promise<void> {
  const workloads = manifests.filter(({ kind }) => /^(Deployment|StatefulSet)$/.test(kind));
  const labels = workloads.map(({ spec }) => spec.selector.matchLabels as unknown);
  for (const manifest of manifests) {
    await validate(manifest);
    const { kind, spec } = manifest;
    if (kind === 'PodDisruptionBudget') expect(labels).toContainEqual(spec.selector.matchLabels);
    if (kind === 'Service') expect(labels).toContainEqual(spec.selector);
    if (kind === 'HorizontalPodAutoscaler') {
      const { name } = spec.scaleTargetRef;
      expect(workloads.map(({ metadata }) => metadata.name)).toContain(name);
      const [{ external }] = spec.metrics;
      expect(external.metric.name).toBe('queued_crawler_queue_oldest_due_seconds');
    }
    if (!workloads.includes(manifest)) continue;
    const [container] = spec.template.spec.containers;
    expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
    expect(container.image).toBe(`queued-crawler:${version}`);
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    // Crawls under way have SHUTDOWN_SECONDS to end.
    const env = new Map<string, string>(
      container.env.map((each: { name: string; value: string }) => [each.name, each.value]),
    );
    const grace: number = spec.template.spec.terminationGracePeriodSeconds;
    expect(grace).toBeGreaterThan(Number(env.get('SHUTDOWN_SECONDS')) + 5);
    // A start may build indexes of a large database; a pod that is killed then begins anew.
    const { periodSeconds, failureThreshold } = container.startupProbe;
    expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(600);
    const known = Object.values(settings).map(({ variable }) => variable as string);
    expect(known).toEqual(expect.arrayContaining([...env.keys()]));
  }
}

test('the manifests of deploy/kubernetes are valid by their schemas and fit together', async () => {
  const manifests = parse(FILE);
  expect(manifests.map(({ kind }) => kind).sort()).toEqual([
    'Deployment',
    'Deployment',
    'HorizontalPodAutoscaler',
    'PodDisruptionBudget',
    'PodDisruptionBudget',
    'Service',
  ]);
  await check(manifests);
});

test('the chart has the version of the project', () => {
  const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
  expect(/^version: (.*)$/m.exec(chart)?.[1]).toBe(version);
  expect(/^appVersion: (.*)$/m.exec(chart)?.[1]).toBe(version);
});

const helm = helmProgram() ?? '';
const set = (...values: readonly string[]): string[] => values.flatMap((each) => ['--set', each]);

describe.skipIf(helm === '')('the chart, with Helm (needs it, or Linux on x64)', () => {
  test('Helm finds no fault in it', () => {
    const { status, stdout } = spawnSync(helm, ['lint', '--strict', CHART], { encoding: 'utf8' });
    expect(status, stdout).toBe(0);
  });

  test('deploy/kubernetes is what it renders: npm run helm:render', () => {
    expect(manifestFile(helm)).toBe(FILE);
  });

  test.each([
    [
      'one pod on the embedded database',
      set(
        'api.enabled=false',
        'worker.enabled=false',
        'all.enabled=true',
        'all.persistence.enabled=true',
        'all.persistence.storageClass=fast',
      ),
    ],
    [
      'both roles in one, on MongoDB',
      set(
        'api.enabled=false',
        'worker.enabled=false',
        'all.enabled=true',
        'all.replicas=3',
        'mongodb.uri=mongodb://a\\,b\\,c/q?replicaSet=rs0',
      ),
    ],
    [
      'the URI of another Secret, a registry, settings',
      set(
        'mongodb.existingSecret=mongo',
        'mongodb.key=uri',
        'imagePullSecrets[0]=registry',
        'settings.BROWSER_PAGES=4',
        'settings.PUBLIC_URL=https://crawler.example',
      ),
    ],
    [
      'a network policy',
      set(
        'networkPolicy.enabled=true',
        'networkPolicy.allowedCidrs[0]=10.1.0.0/16',
        'networkPolicy.from[0].podSelector.matchLabels.app=shop',
      ),
    ],
    [
      'no autoscaling, and places for pods',
      set(
        'worker.autoscaling.enabled=false',
        'worker.replicas=7',
        'worker.nodeSelector.pool=crawlers',
        'worker.tolerations[0].operator=Exists',
      ),
    ],
  ])('it renders %s', async (_title, options) => {
    const manifests = parse(renderChart(helm, options));
    expect(manifests.length).toBeGreaterThan(1);
    await check(manifests);
  });

  test('values have the effect that they name', () => {
    const embedded = parse(
      renderChart(
        helm,
        set(
          'api.enabled=false',
          'worker.enabled=false',
          'all.enabled=true',
          'all.persistence.enabled=true',
        ),
      ),
    );
    const [workload] = embedded.filter(({ kind }) => kind === 'StatefulSet');
    expect(workload?.spec.template.spec.containers[0].volumeMounts).toContainEqual({
      name: 'data',
      mountPath: '/data',
    });
    expect(workload?.spec.strategy).toBeUndefined();
    const strategies = (options: string[]): unknown[] =>
      parse(renderChart(helm, options))
        .filter(({ kind }) => kind === 'Deployment')
        .map(({ spec }) => spec.strategy);
    expect(strategies([])).toEqual([{ type: 'RollingUpdate' }, { type: 'RollingUpdate' }]);
    const recreate = { type: 'Recreate', rollingUpdate: null };
    expect(strategies(set('updateStrategy=Recreate'))).toEqual([recreate, recreate]);
    const policies = parse(
      renderChart(
        helm,
        set('networkPolicy.enabled=true', 'networkPolicy.allowedCidrs[0]=10.1.0.0/16'),
      ),
    ).filter(({ kind }) => kind === 'NetworkPolicy');
    const blocks = policies[0]?.spec.egress.flatMap((rule: { to?: object[] }) => rule.to ?? []);
    expect(blocks).toContainEqual({ ipBlock: { cidr: '10.1.0.0/16' } });
    const env = (options: string[]): unknown[] =>
      parse(renderChart(helm, options)).find(({ kind }) => kind === 'Deployment')?.spec.template
        .spec.containers[0].env;
    expect(env(set('settings.BROWSER_PAGES=4'))).toContainEqual({
      name: 'BROWSER_PAGES',
      value: '4',
    });
    expect(env(set('mongodb.existingSecret=mongo', 'mongodb.key=uri'))).toContainEqual({
      name: 'MONGODB_URI',
      valueFrom: { secretKeyRef: { name: 'mongo', key: 'uri' } },
    });
  });

  test.each([
    ['all.enabled=true', 'in place of api and worker'],
    ['all.persistence.enabled=true,all.replicas=2', 'has one process'],
  ])('it refuses %s, and says why', (value, reason) => {
    expect(() => renderChart(helm, set(value))).toThrow(reason);
  });
});
