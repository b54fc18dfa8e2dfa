import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collects garbage, in a turn of its own: what weak references name lives until the turn ends. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  await new Promise<void>((resolve) => setImmediate(resolve));
  collect();
  await new Promise<void>((resolve) => setImmediate(resolve));
}
