import { parseArgs } from 'node:util';
import { writeMarkedSection } from '../marked-section.ts';
import { type Deployment, limitsOf, readCosts } from './scale-model.ts';

// Computes which document, index or server is used up first in deployments that fit no single machine.

const HELP = `Usage: npm run scale [-- --processes N --shards N --crawlers N --concurrency N --page-ms N --accounts N --pushed-at-once N --delivery storage|webhook] [--write]

Computes from the costs of bench/scale/costs.json at which rate of URLs which resource is used up first, for deployments of
docs/scale.md, or for the one that is described by options.

  --write  puts the tables into docs/scale.md
`;

const BASE: Deployment = {
  processes: 100,
  shards: 1,
  accounts: 1,
  crawlers: 1_000,
  concurrency: 50,
  pageMs: 1_000,
  delivery: 'storage',
  pushedAtOnce: 100,
};

const DEPLOYMENTS: Readonly<Record<string, Deployment>> = {
  '1,000 crawlers, 100 processes, one account': BASE,
  'the same on 12 shards': { ...BASE, shards: 12 },
  'the same on 12 shards, 100 accounts': { ...BASE, shards: 12, accounts: 100 },
  'the same, delivered': { ...BASE, shards: 12, accounts: 100, delivery: 'webhook' },
  'one account on 12 shards, URLs pushed one by one': { ...BASE, shards: 12, pushedAtOnce: 1 },
  'one crawler of concurrency 1,000, pages of 200 ms': {
    ...BASE,
    shards: 12,
    crawlers: 1,
    concurrency: 1_000,
    pageMs: 200,
  },
  '10,000 crawlers of concurrency 5': { ...BASE, shards: 12, crawlers: 10_000, concurrency: 5 },
  '500 processes, 12 shards, 100 accounts': {
    ...BASE,
    shards: 12,
    accounts: 100,
    processes: 500,
  },
};

const { values } = parseArgs({
  options: {
    processes: { type: 'string' },
    shards: { type: 'string' },
    accounts: { type: 'string' },
    crawlers: { type: 'string' },
    concurrency: { type: 'string' },
    'page-ms': { type: 'string' },
    'pushed-at-once': { type: 'string' },
    delivery: { type: 'string' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const SHOWN = 3;

function number(name: keyof typeof values, fallback: number): number {
  const value = values[name];
  if (value === undefined) return fallback;
  if (!(Number(value) >= 1)) throw new Error(`--${name} must be a number of 1 or more`);
  return Number(value);
}

/** The deployment that the options describe; undefined without options. */
function givenDeployment(): Deployment | undefined {
  const { write: _write, help: _help, ...given } = values;
  if (Object.keys(given).length === 0) return undefined;
  const { delivery = 'storage' } = given;
  if (delivery !== 'storage' && delivery !== 'webhook') {
    throw new Error('--delivery must be storage or webhook');
  }
  return {
    processes: number('processes', BASE.processes),
    shards: number('shards', BASE.shards),
    accounts: number('accounts', BASE.accounts),
    crawlers: number('crawlers', BASE.crawlers),
    concurrency: number('concurrency', BASE.concurrency),
    pageMs: number('page-ms', BASE.pageMs),
    pushedAtOnce: number('pushed-at-once', BASE.pushedAtOnce),
    delivery,
  };
}

const { assumed, designs } = readCosts();

function tableOf(deployments: Readonly<Record<string, Deployment>>): string {
  const all = Object.values(designs);
  const head = `| | ${all.map(({ title }) => title).join(' | ')} |`;
  const rows = Object.entries(deployments).map(([name, deployment]) => {
    const cells = all.map((costs) =>
      limitsOf(costs, assumed, deployment)
        .slice(0, SHOWN)
        .map((limit) => `${limit.name} ${limit.rate.toLocaleString('en')}`)
        .join('; '),
    );
    return `| ${name} | ${cells.join(' | ')} |`;
  });
  return [head, `|---|${all.map(() => '---|').join('')}`, ...rows].join('\n');
}

if (values.help) console.log(HELP);
else {
  const given = givenDeployment();
  const table = tableOf(given === undefined ? DEPLOYMENTS : { 'as described': given });
  console.log(table);
  if (values.write) {
    if (given !== undefined) throw new Error('--write is for the deployments of the document');
    writeMarkedSection(new URL('../../docs/scale.md', import.meta.url), 'scale', table);
  }
}
