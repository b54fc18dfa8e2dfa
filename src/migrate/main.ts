import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { assertReadable } from '../backup/usable-path.ts';
import { DomainError } from '../domain/errors.ts';
import { fileFailureText } from '../domain/file-failure.ts';
import { openMongoStore } from '../store/mongo/mongo-store.ts';
import { uriRefusal } from '../store/mongo/uri-refusal.ts';
import { databaseFile } from '../store/sqlite/private-file.ts';
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts';
import { stopsWithParent, whenOrphaned } from '../when-orphaned.ts';
import { copyToMongodb } from './copy-to-mongodb.ts';

const HELP = `Copies everything from the embedded database to MongoDB: accounts, crawlers, queues,
results, deliveries, statistics.

  npm run migrate -- --from ./data --to mongodb://host/database

  --from   DATA_DIR of the service, which must be stopped
  --to     connection string of an empty database

A copy that was interrupted is continued by the same command, unless a service has written to
the source since. The source keeps what it has;
one of an older version is brought to the new version first, and the older program does not open it any more.
`;

async function migrate(from: string, to: string): Promise<boolean> {
  await assertReadable(databaseFile(from));
  const logger = pino({ level: 'silent' });
  await using stack = new AsyncDisposableStack();
  const embedded = await openSqliteStore({
    dataDir: from,
    logger,
    onUpgrade({ version, of }) {
      process.stdout.write(`${from} is upgraded: version ${version} of ${of}\n`);
    },
  });
  stack.defer(() => embedded.store.close());
  // One that a service of an older version uses is refused at once.
  const target = { uri: to, logger, continuesCopy: true, waitTimes: { waitMs: 0 } };
  const mongodb = await openMongoStore(target).catch(nameOption);
  stack.defer(() => mongodb.store.close());
  let printedAt = 0;
  const counts = await copyToMongodb({
    from: embedded,
    to: mongodb.db,
    onProgress(what, copied, of) {
      if (copied < of && Date.now() - printedAt < 1_000) return;
      printedAt = Date.now();
      process.stdout.write(`${what}: ${copied} of ${of}\n`);
    },
  });
  process.stdout.write(`${''.padEnd(16)} ${'from'.padStart(10)} ${'to'.padStart(10)}\n`);
  for (const { what, from: source, to: target } of counts) {
    process.stdout.write(
      `${what.padEnd(16)} ${String(source).padStart(10)} ${String(target).padStart(10)}\n`,
    );
  }
  return counts.every(({ isWhole }) => isWhole);
}

/** Names the option of a database that cannot be used. */
function nameOption(error: unknown): never {
  const refusal = uriRefusal(error);
  if (refusal === undefined) throw error;
  if (error instanceof URIError || (error as Error).name === 'MongoParseError') {
    throw new DomainError('invalid', 'invalid_uri', `--to: ${refusal}`, { cause: error });
  }
  throw new Error(`--to: ${refusal}`, { cause: error });
}

/** As docs/cli.md says. */
function exitCodeOf(error: unknown): number {
  if (!(error instanceof DomainError)) return 1;
  if (error.kind === 'invalid') return 2;
  return error.kind === 'failed_precondition' ? 5 : 1;
}

if (process.env.npm_lifecycle_event !== undefined || stopsWithParent(process.env)) {
  whenOrphaned(() => process.exit(1));
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.on(signal, () => {
    process.stderr.write('Interrupted. The same command continues the copy.\n');
    process.exit(code);
  });
}

try {
  const { values } = parseArgs({
    options: {
      from: { type: 'string' },
      to: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(HELP);
  } else if (values.from === undefined || values.to === undefined) {
    process.stderr.write(`--from and --to are needed.\n\n${HELP}`);
    process.exitCode = 2;
  } else if (await migrate(values.from, values.to)) {
    process.stdout.write('The copy is whole. Start the service with MONGODB_URI.\n');
  } else {
    process.stderr.write(
      'The counts of both sides differ; the copy is not whole. Remove the target database, and copy again.\n',
    );
    process.exitCode = 1;
  }
} catch (error) {
  process.stderr.write(`${fileFailureText(error)}\n`);
  process.exitCode = exitCodeOf(error);
}
