import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** The folder of the chart. */
export const CHART = join(import.meta.dirname, '..', '..', 'deploy', 'helm');

const HEAD = `# Rendered from deploy/helm by \`npm run helm:render\`. With Helm, use the chart.
#
#   kubectl apply -f deploy/kubernetes
#
# MongoDB is yours: put its URI and the tokens into the Secret \`queued-crawler\` first:
#   kubectl create secret generic queued-crawler --from-literal=MONGODB_URI=... \\
#     --from-literal=NORMAL_TOKEN=... --from-literal=JAVASCRIPT_TOKEN=... --from-literal=ADMIN_TOKEN=...
`;

/** Renders the chart with these options of Helm, such as `--set`. Throws what Helm says. */
export function renderChart(helm: string, options: readonly string[] = []): string {
  const args = ['template', 'queued-crawler', CHART, ...options];
  return execFileSync(helm, args, { encoding: 'utf8', stdio: 'pipe' });
}

/** The text of `deploy/kubernetes/queued-crawler.yaml`. */
export function manifestFile(helm: string): string {
  return HEAD + renderChart(helm).replaceAll(/^# Source: .*\n/gm, '');
}
