import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';
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
/** One with more results is answered with 413. */
const MOST_TOGETHER = 12;

/** Opens a {@link ChaosReceiver} on a free port. */
export async function openChaosReceiver(): Promise<ChaosReceiver> {
  const counts = new Map<string, number>();
  const told = new Map<string, ToldPush>();
  let posts = 0;
  let again = 0;

  function acknowledge(rid: string, push: ToldPush): void {
    told.set(rid, push);
    const before = counts.get(rid) ?? 0;
    counts.set(rid, before + 1);
    if (before > 0) again += 1;
  }

  function acknowledgeAll(body: Buffer, coding: string | undefined): void {
    const lines = coding === 'gzip' ? gunzipSync(body) : body;
    for (const line of lines.toString().trimEnd().split('\n')) {
      const { rid, metadata, again_of: againOf } = JSON.parse(line) as Record<string, string>;
      acknowledge(String(rid), { metadata, againOf });
    }
  }

  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('error', () => response.destroy());
    request.on('end', () => {
      posts += 1;
      const { metadata, rid, 'webhook-again-of': againOf, ...headers } = request.headers;
      const results = Number(headers['webhook-results'] ?? 1);
      if (posts % FAILS_ONE_OF === 0) return response.writeHead(500).end();
      if (results > MOST_TOGETHER) return response.writeHead(413).end();
      if (rid === undefined) acknowledgeAll(Buffer.concat(parts), headers['content-encoding']);
      else {
        const push = { metadata: metadata?.toString(), againOf: againOf?.toString() };
        acknowledge(String(rid), push);
      }
      return response.writeHead(204).end();
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
