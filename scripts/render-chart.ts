import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { helmProgram } from './helm/helm-program.ts';
import { manifestFile } from './helm/render-chart.ts';

// `npm run helm:render`: writes the manifests for those who do not use Helm.

const helm = helmProgram();
if (helm === undefined) throw new Error('there is no Helm: install it, or name it by HELM');
const file = join(import.meta.dirname, '..', 'deploy', 'kubernetes', 'queued-crawler.yaml');
writeFileSync(file, manifestFile(helm));
