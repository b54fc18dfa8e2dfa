import type { TestProject } from 'vitest/node';
import { mongodProgram, startMongod } from './mongod.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the tests' MongoDB is; empty without one. */
    mongodbUri: string;
  }
}

/** Finds or starts the MongoDB of the tests, and says loudly when it finds no server. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | void> {
  const given = process.env.MONGODB_TEST_URI ?? '';
  if (given !== '') {
    project.provide('mongodbUri', given);
    return undefined;
  }
  const program = mongodProgram();
  if (program === undefined) {
    project.provide('mongodbUri', '');
    process.stdout.write(
      'SKIPPED: every test on MongoDB, for there is neither MONGODB_TEST_URI, MONGOD nor a mongod on PATH. Run them: npm run test:mongodb\n',
    );
    return undefined;
  }
  const mongod = await startMongod(program);
  project.provide('mongodbUri', mongod.uri);
  return async () => mongod[Symbol.asyncDispose]();
}
