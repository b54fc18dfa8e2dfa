import { spawn } from 'node:child_process';
import { MongoMemoryServer } from 'mongodb-memory-server-core';

// Runs the tests that need MongoDB on MongoDB's own server: the one MONGOD names, else one that is fetched for this machine.
const systemBinary = process.env.MONGOD ?? '';
const server = await MongoMemoryServer.create({
  instance: { storageEngine: 'wiredTiger' },
  ...(systemBinary === '' ? {} : { binary: { systemBinary } }),
});
try {
  const tests = spawn(
    'vitest',
    ['run', 'mongo', 'processes', 'faults', 'migrate', ...process.argv.slice(2)],
    {
      stdio: 'inherit',
      env: { ...process.env, MONGODB_TEST_URI: server.getUri() },
    },
  );
  process.exitCode = await new Promise<number>((resolve, reject) => {
    tests.once('error', reject);
    tests.once('exit', (code) => resolve(code ?? 1));
  });
} finally {
  await server.stop();
}
