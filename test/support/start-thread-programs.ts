import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
import { inject } from 'vitest';

// A setup file: the service's threads run the programs that `thread-programs.ts` has put into one file each.

const programs = inject('threadPrograms');
const { Worker } = threads;

// A worker of the tests has many files, and the class has been replaced for the first one.
if (Worker.name !== 'TestWorker') {
  class TestWorker extends Worker {
    constructor(program: string | URL, options?: ConstructorParameters<typeof Worker>[1]) {
      const found = programs[program.toString()];
      super(found === undefined ? program : new URL(found), options);
    }
  }
  threads.Worker = TestWorker;
  syncBuiltinESMExports();
}
