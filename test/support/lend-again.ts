import { afterAll } from 'vitest';
import { isLong } from './length.ts';

/** What was lent; disposing gives it back. */
export interface Lent<Resource> extends AsyncDisposable {
  readonly resource: Resource;
}

/**
 * Lends a resource to each test. At full length each gets one of its own; otherwise it is emptied
 * and lent again, because opening one takes longer than most tests. What is lent at the same time is
 * never the same, and all are closed after the tests of the file.
 */
export function lendAgain<Resource extends AsyncDisposable>(
  open: () => Promise<Resource>,
  empty: (resource: Resource) => Promise<void>,
): () => Promise<Lent<Resource>> {
  const idle: Resource[] = [];
  afterAll(async () => {
    for (const resource of idle.splice(0)) await resource[Symbol.asyncDispose]();
  });
  return async () => {
    const resource = idle.pop() ?? (await open());
    return {
      resource,
      async [Symbol.asyncDispose]() {
        if (isLong) return resource[Symbol.asyncDispose]();
        await empty(resource);
        idle.push(resource);
        return undefined;
      },
    };
  };
}
