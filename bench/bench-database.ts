import { type Document, MongoClient } from 'mongodb';
import { createRid } from '../src/domain/rid.ts';
import { mongodProgram, startMongod } from '../test/support/mongod.ts';

/** A database of a benchmark; removed when disposed. */
export interface BenchDatabase extends AsyncDisposable {
  readonly uri: string;
  /** What the server says it is. */
  readonly version: string;
}

/** Whether there is a MongoDB for benchmarks: `MONGODB_URI`, `MONGOD` or a `mongod` on PATH. */
export function hasMongodb(): boolean {
  return (process.env.MONGODB_URI ?? '') !== '' || mongodProgram() !== undefined;
}

/**
 * Opens a new database on the server that `MONGODB_URI` names, else on one that is started for it from
 * `MONGOD` or a `mongod` on PATH. Throws an Error when there is neither.
 */
export async function openBenchDatabase(): Promise<BenchDatabase> {
  const given = process.env.MONGODB_URI ?? '';
  const program = mongodProgram();
  if (given === '' && program === undefined) {
    throw new Error('there is no MongoDB: set MONGODB_URI, or MONGOD to the program of a server');
  }
  const mongod = given === '' ? await startMongod(program ?? '') : undefined;
  const url = new URL(mongod?.uri ?? given);
  url.pathname = `/bench_${createRid(new Date())}`;
  const info = await withClient(url.href, (client) => client.db().admin().buildInfo());
  return {
    uri: url.href,
    version: describeServer(info),
    async [Symbol.asyncDispose]() {
      if (mongod === undefined) await withClient(url.href, (client) => client.db().dropDatabase());
      else await mongod[Symbol.asyncDispose]();
    },
  };
}

/** The version, and the engine of a server that is compatible with MongoDB rather than its maker's. */
function describeServer({ version, storageEngines = [] }: Document): string {
  const engines: readonly string[] = storageEngines;
  const isOwn = engines.length === 0 || engines.includes('wiredTiger');
  return isOwn ? String(version) : `${version} (compatible, on ${engines.join(', ')})`;
}

async function withClient<T>(uri: string, use: (client: MongoClient) => Promise<T>): Promise<T> {
  const client = await MongoClient.connect(uri);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
