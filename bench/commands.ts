import { parseArgs } from 'node:util';
import { startCountedProcess } from '../test/support/commands/counted-process.ts';
import {
  ACKNOWLEDGE,
  COMMAND_SETTINGS,
  type CommandFigure,
  commandsOfLeased,
  commandsOfOneUrl,
  commandsPerUrl,
  commandsWhenIdle,
} from '../test/support/commands/measure-commands.ts';
import { startReceiver } from '../test/support/receiver.ts';
import { startSite } from '../test/support/site.ts';
import { openBenchDatabase } from './bench-database.ts';

// Prints how many commands the service sends to MongoDB for what it does, counted in the driver.

const HELP = `Usage: npm run bench:commands [-- --quick] [--all]

Commands to MongoDB for each URL, counted in the driver of a service process, on the server that MONGODB_URI names
(a database of its own, dropped afterwards) or one that is started from MONGOD.

  --quick  fewer URLs, and 50 leased crawlers instead of 500
  --all    prints every command, not only the most frequent ones
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function print(what: string, unit: string, { perUnit, units, commands }: CommandFigure): void {
  console.log(`${what.padEnd(60)} ${perUnit.toFixed(2).padStart(8)} per ${unit}`);
  for (const [name, count] of Object.entries(commands).slice(0, values.all ? undefined : 5)) {
    console.log(`    ${name.padEnd(56)} ${(count / units).toFixed(2).padStart(8)}`);
  }
}

async function main(): Promise<void> {
  await using database = await openBenchDatabase();
  await using site = await startSite();
  await using receiver = await startReceiver({ answer: ACKNOWLEDGE });
  const env = { MONGODB_URI: database.uri, ...COMMAND_SETTINGS };
  await using service = await startCountedProcess(env);
  const bench = { service, site, hook: receiver.url };
  const scale = values.quick ? 0.2 : 1;
  const idle = await commandsWhenIdle(bench, 10 * scale);
  print('a process without work', 'second', idle);
  print('one URL to an idle crawler', 'URL', await commandsOfOneUrl(bench, 10 * scale, idle));
  for (const [pageMs, urls] of [
    [1_000, 500],
    [200, 2_000],
    [0, 5_000],
  ] as const) {
    for (const delivery of ['storage', 'webhook'] as const) {
      const options = { pageMs, concurrency: 50, urls: urls * scale, delivery };
      const figure = await commandsPerUrl(bench, options);
      print(`${delivery}, pages of ${pageMs} ms, concurrency 50`, 'URL', figure);
    }
  }
  const crawlers = 500 * scale;
  const leased = await commandsOfLeased(bench, crawlers, 10 * scale);
  print(`${crawlers} leased crawlers without work`, 'second', leased);
}

if (values.help) console.log(HELP);
else await main();
