import { createServer } from 'node:http';
import { listen } from '../listen.ts';

/** What a result says of its push. */
export interface ToldPush {
  readonly metadata: string | undefined;
  readonly againOf: string | undefined;
}

/** A webhook endpoint that counts the POSTs of each `rid`. */
export interface ChaosReceiver extends AsyncDisposable {
  readonly url: string;
  /** POSTs of a `rid` that were acknowledged. */
  acknowledged(rid: string): number;
  /** What the last of them said of the push. */
  told(rid: string): ToldPush | undefined;
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
  const told = new Map<string, ToldPush>();
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
      const { metadata, 'webhook-again-of': againOf } = request.headers;
      const rid = String(request.headers.rid);
      told.set(rid, { metadata: metadata?.toString(), againOf: againOf?.toString() });
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
    told: (rid) => told.get(rid),
    get rids() {
      return counts.size;
    },
    get again() {
      return again;
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}
