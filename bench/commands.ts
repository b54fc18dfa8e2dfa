import { parseArgs } from 'node:util';
import { openBenchDatabase } from './bench-database.ts';
import { measureCommandFigures } from './command-figures.ts';

// Prints how many commands the service sends to MongoDB for what it does, counted in the driver.

const HELP = `Usage: npm run bench:commands [-- --quick] [--all]

Commands to MongoDB for each URL, counted in the driver of a service process. It uses the server that MONGODB_URI names
(a database of its own, dropped afterwards) or one that is started from MONGOD.

  --quick  fewer URLs, and 100 leased crawlers instead of 500
  --all    prints every command, not only the most frequent ones
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  await using database = await openBenchDatabase();
  const figures = measureCommandFigures(database.uri, values.quick ? 0.2 : 1);
  for await (const { what, unit, perUnit, aboveIdle, units, commands } of figures) {
    const above =
      unit === 'URL' ? `, ${aboveIdle.toFixed(2)} without those of an idle process` : '';
    console.log(`${what.padEnd(60)} ${perUnit.toFixed(2).padStart(8)} per ${unit}${above}`);
    for (const [name, count] of Object.entries(commands).slice(0, values.all ? undefined : 5)) {
      console.log(`    ${name.padEnd(56)} ${(count / units).toFixed(2).padStart(8)}`);
    }
  }
}

if (values.help) console.log(HELP);
else await main();
