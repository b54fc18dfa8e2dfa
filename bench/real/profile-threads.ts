import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import {
  getEnvironmentData,
  isMainThread,
  setEnvironmentData,
  threadId,
} from 'node:worker_threads';

// Loaded with `--import` into the service and, by its flags, into each of its threads. Profiles
// the thread and writes what it has every few seconds to the folder THREAD_PROFILES: a thread that is
// ended writes nothing at its end.

const KEY = 'thread-profiles';
const WRITE_MS = 2_000;
const SAMPLE_MICROSECONDS = 500;

if (isMainThread) setEnvironmentData(KEY, process.env['THREAD_PROFILES'] ?? '');
const folder = getEnvironmentData(KEY);
if (typeof folder === 'string' && folder !== '') {
  mkdirSync(folder, { recursive: true });
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_MICROSECONDS });
  session.post('Profiler.start');
  const file = process.argv[1]?.split('/').at(-1) ?? 'main';
  let part = 0;
  const write = (): void => {
    session.post('Profiler.stop', (_error, { profile }) => {
      part += 1;
      const name = `${threadId}-${isMainThread ? 'main' : file}-${part}.cpuprofile`;
      writeFileSync(join(folder, name), JSON.stringify(profile));
    });
    session.post('Profiler.start');
  };
  setInterval(write, WRITE_MS).unref();
}
