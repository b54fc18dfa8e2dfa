// A crawl thread that logs, again and again, the processor time of its longest iteration since the last line.
import { parentPort } from 'node:worker_threads';
import { measureIterations } from './longest-iteration.ts';

await import('../../src/threads/crawl-thread.ts');
const measured = measureIterations();
setInterval(() => {
  const fields = { longestMs: measured.takeLongestMs() };
  parentPort?.postMessage([{ kind: 'log', level: 'info', fields, message: 'iteration' }]);
}, 5);
