import { createServer } from 'node:http';
import { listen } from '../listen.ts';

/** A webhook endpoint that counts the POSTs of each `rid`. */
export interface ChaosReceiver extends AsyncDisposable {
  readonly url: string;
  /** POSTs of a `rid` that were acknowledged. */
  acknowledged(rid: string): number;
  /** Different `rid`s acknowledged. */
  readonly rids: number;
  /** Acknowledged POSTs beyond the first of their `rid`. */
  readonly again: number;
}

/** One POST in this number is answered with 500. */
const FAILS_ONE_OF = 50;

/** Opens a {@link ChaosReceiver} on a free port. */
export async function openChaosReceiver(): Promise<ChaosReceiver> {
  const counts = new Map<string, number>();
  let posts = 0;
  let again = 0;
  const server = createServer((request, response) => {
    request.resume();
    request.on('error', () => response.destroy());
    request.on('end', () => {
      posts += 1;
      if (posts % FAILS_ONE_OF === 0) {
        response.writeHead(500).end();
        return;
      }
      const rid = String(request.headers.rid);
      const before = counts.get(rid) ?? 0;
      counts.set(rid, before + 1);
      if (before > 0) again += 1;
      response.writeHead(204).end();
    });
  });
  const open = await listen(server);
  return {
    url: `http://127.0.0.1:${open.port}/hook`,
    acknowledged: (rid) => counts.get(rid) ?? 0,
    get rids() {
      return counts.size;
    },
    get again() {
      return again;
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}
