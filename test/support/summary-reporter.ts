import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';
import { HEAVY } from './heavy.ts';
import { isLong, isQuick } from './length.ts';
import { mongodProgram } from './mongod.ts';

/**
 * Names what was skipped, and closes a run with the plain line `tests: N passed, N failed, N skipped`, which programs
 * read. Without a MongoDB server, one more line says that MongoDB was not tested.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const counts = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      // A file that does not load, or leaves something open, fails without a test of its own.
      const isOfTest = [...module.children.allTests('failed')].length > 0;
      if (module.state() === 'failed' && !isOfTest) counts.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending') counts[state] += 1;
        if (state === 'skipped') say(`skipped: ${module.relativeModuleId}: ${test.fullName}`);
      }
    }
    if (isQuick) {
      const files = globSync(HEAVY, { cwd: join(import.meta.dirname, '..') });
      say(`${files.length} heavy files were left out; all files: npm run test:all`);
    }
    if (!isLong) say('Long tests were skipped or shortened; at full length: npm run test:long');
    const { passed, failed, skipped } = counts;
    say(`tests: ${passed} passed, ${failed} failed, ${skipped} skipped`);
    const hasMongodb = (process.env.MONGODB_TEST_URI ?? '') !== '' || mongodProgram() !== undefined;
    if (!hasMongodb) say('MongoDB was not tested: name a server by MONGOD or MONGODB_TEST_URI.');
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
