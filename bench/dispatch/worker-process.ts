import { fork } from 'node:child_process';
import { join } from 'node:path';

/** A job for a worker process, and what it answers. */
export interface WorkerProcess extends AsyncDisposable {
  ask<Reply>(job: object): Promise<Reply>;
}

interface Answer {
  readonly reply?: unknown;
  readonly error?: string;
}

/** Starts a file of this folder in a process that does one job after the other. */
export function startWorkerProcess(file: string, args: readonly string[] = []): WorkerProcess {
  const child = fork(join(import.meta.dirname, file), args);
  const ended = new Promise<never>((_resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`${file} ended with code ${code}`)));
  });
  ended.catch(() => undefined);
  return {
    async ask<Reply>(job: object) {
      const answer = new Promise<Answer>((resolve) => {
        child.once('message', (message) => resolve(message as Answer));
      });
      child.send(job);
      const { reply, error } = await Promise.race([answer, ended]);
      if (error !== undefined) throw new Error(`${file}: ${error}`);
      return reply as Reply;
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect();
      await ended.catch(() => undefined);
    },
  };
}

/** Does the jobs that the parent process sends; ends with it. */
export function answerJobs(handle: (job: unknown) => Promise<unknown>): void {
  process.on('message', (job) => {
    handle(job).then(
      (reply) => process.send?.({ reply }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
  process.on('disconnect', () => process.exit(0));
}

/** Measures the wall time and the processor time of this process. */
export async function timed(work: () => Promise<void>) {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(before);
  return { seconds, cpuSeconds: (user + system) / 1e6 };
}
