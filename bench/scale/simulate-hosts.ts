import { parseArgs } from 'node:util';
import { writeMarkedSection } from '../marked-section.ts';
import {
  isUsuallyDead,
  PARTS,
  pageMs,
  type SimulatedCrawler,
  simulate,
} from './simulated-crawl.ts';

// Simulates how the dispatcher's own lanes and read-ahead crawl a list of many hosts: the time is that
// of the model, so hours take minutes.

const HELP = `Usage: node bench/scale/simulate-hosts.ts [--urls N] [--hosts N] [--concurrency N] [--write]

  --write  puts the table into docs/scale.md
`;

/** The most URLs of a host to the fewest: the n-th host has a part of 1 / n to the power of this. */
const SKEW = 0.8;
interface Case extends SimulatedCrawler {
  readonly title: string;
}

const CASES: readonly Case[] = [
  { title: 'no politeness' },
  {
    title: 'two requests at once at a host, 200 ms apart',
    politeness: { maxPerHost: 2, delayMs: 200, robotsTxt: false },
  },
];

/** How many URLs each host has. The order of the hosts says nothing of it. */
function countsOf(urls: number, hosts: number): Int32Array {
  const weights = Array.from({ length: hosts }, (_, rank) => (rank + 1) ** -SKEW);
  const sum = weights.reduce((all, each) => all + each, 0);
  const counts = new Int32Array(hosts);
  // A step that has no common divisor with the number of hosts reaches each of them once.
  let host = 0;
  for (const weight of weights) {
    counts[host] = Math.max(1, Math.round((weight / sum) * urls));
    host = (host + 611_953) % hosts;
  }
  return counts;
}

/** How long the slots are held by all URLs, each tried once, one after the other in any order. */
function inOrderSeconds(counts: Int32Array, concurrency: number): number {
  let total = 0;
  counts.forEach((count, host) => {
    total += count * pageMs(host);
  });
  return total / concurrency / 1_000;
}

function main(): void {
  const { values } = parseArgs({
    options: {
      urls: { type: 'string', default: '10000000' },
      hosts: { type: 'string', default: '1000000' },
      concurrency: { type: 'string', default: '1000' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(HELP);
  const concurrency = Number(values.concurrency);
  const counts = countsOf(Number(values.urls), Number(values.hosts));
  const hours = (seconds = 0): string => `${(seconds / 3_600).toFixed(2)} h`;
  const rows = CASES.map((each) => {
    const startedAt = performance.now();
    const { at, usedSlots, tries, looks, steps } = simulate(
      counts,
      concurrency,
      each,
      isUsuallyDead,
      (percent, seconds) => {
        const took = ((performance.now() - startedAt) / 1_000).toFixed(0);
        console.error(
          `${each.title}: ${percent} % after ${hours(seconds)} of the model, ${took} s`,
        );
      },
    );
    const percent = `${(100 * usedSlots).toFixed(1)} %`;
    const cells = [...PARTS.map((part) => hours(at.get(part))), percent, tries.ofDead, looks];
    const took = ((performance.now() - startedAt) / 1_000).toFixed(0);
    console.error(`${each.title}: all after ${hours(at.get(1))}; the simulation took ${took} s`);
    return `| ${[each.title, ...cells, (steps / looks).toFixed(0)].join(' | ')} |`;
  });
  const largest = counts.reduce((most, count) => Math.max(most, count), 0);
  const text = [
    `${values.urls} URLs of ${values.hosts} hosts at concurrency ${concurrency}; the largest host has ${largest}. With each URL tried once, in any order, all slots would be held for ${hours(inOrderSeconds(counts, concurrency))}.`,
    '',
    '| | half | 90 % | 99 % | all | slots in use until 90 % | tries of dead hosts | looks | hosts a look |',
    '|---|---|---|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
  console.log(text);
  if (values.write) {
    writeMarkedSection(new URL('../../docs/scale.md', import.meta.url), 'hosts', text);
  }
}

main();
