import { spawn } from 'node:child_process';
import { MongoMemoryReplSet } from 'mongodb-memory-server-core';

// Runs the tests that need MongoDB, at full length, on MongoDB's own server: the one at
// MONGODB_TEST_URI, else the one MONGOD names, else one that is fetched for this machine.
const given = process.env.MONGODB_TEST_URI ?? '';
const systemBinary = process.env.MONGOD ?? '';
const server =
  given === ''
    ? await MongoMemoryReplSet.create({
        replSet: { storageEngine: 'wiredTiger' },
        ...(systemBinary === '' ? {} : { binary: { systemBinary } }),
      })
    : undefined;
function run(...filters: string[]): Promise<number> {
  const tests = spawn('vitest', ['run', ...filters, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { TEST_LENGTH: 'long', ...process.env, MONGODB_TEST_URI: server?.getUri() ?? given },
  });
  return new Promise((resolve, reject) => {
    tests.once('error', reject);
    tests.once('exit', (code) => resolve(code ?? 1));
  });
}

try {
  const ends = [
    await run(
      '--project',
      'embedded',
      'mongo',
      'processes',
      'share',
      'faults',
      'chaos',
      'commands',
      'migrate',
      'backup',
    ),
    await run('--project', 'mongodb'),
  ];
  process.exitCode = Math.max(...ends);
} finally {
  await server?.stop();
}
