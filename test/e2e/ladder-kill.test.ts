import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startProxies } from '../support/proxy.ts';
import { startReceiver } from '../support/receiver.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const URLS = 20;
const DIRECT = '127.0.0.1';
const A = '127.0.0.11';
const B = '127.0.0.12';

interface WorkingProcess {
  readonly id: string;
  readonly slots: number;
}

describe.skipIf(mongodbUri === '')('a process that is killed in the middle of climbs', () => {
  test('loses no URL: another one continues each at its rung, and each ends once', async () => {
    const held: { readonly from: string; readonly response: ServerResponse }[] = [];
    let isOpen = false;
    const end = (from: string, response: ServerResponse): void => {
      const isBlocked = from !== B;
      response.writeHead(isBlocked ? 403 : 200, { 'content-type': 'text/html' });
      response.end(isBlocked ? 'no' : '<p>page</p>');
    };
    await using database = testDatabase();
    await using proxies = await startProxies({}, {});
    await using receiver = await startReceiver();
    await using site = await startSite({
      routes: {
        // The second rung keeps the even URLs, and the third one all.
        '/page': (request, response, url) => {
          const from = request.socket.remoteAddress ?? '';
          const isEven = Number(url.searchParams.get('n')) % 2 === 0;
          if (isOpen || from === DIRECT || (from === A && !isEven)) end(from, response);
          else held.push({ from, response });
        },
      },
    });
    const PROXIES = JSON.stringify({ a: proxies[0]?.url, b: proxies[1]?.url });
    const env = { MONGODB_URI: database.uri, PROXIES };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    const made = await first.rest('POST', `/crawler/${NORMAL}`, {
      name: 'climber',
      callback_url: receiver.url,
      concurrency: URLS,
      escalate: 'direct,pool:a,pool:b',
    });
    expect(made.status, made.text).toBe(200);
    const items = Array.from({ length: URLS }, (_, n) => ({ url: `${site.url}/page?n=${n}` }));
    const pushed = await first.rest('POST', `/crawler/${NORMAL}/climber/push_batch`, { items });
    const rids: string[] = pushed.json.results.map(({ rid }: { rid: string }) => rid);
    await eventually(() => {
      expect(held.filter(({ from }) => from === A)).toHaveLength(URLS / 2);
      expect(held.filter(({ from }) => from === B)).toHaveLength(URLS / 2);
    });

    const { processes } = (await first.rest('GET', `/crawler/${NORMAL}/climber`)).json;
    const slotsOf = ({ process: { pid } }: typeof first): number =>
      processes.find(({ id }: WorkingProcess) => id.includes(`:${pid}:`))?.slots ?? 0;
    const [killed, other] = slotsOf(first) >= slotsOf(second) ? [first, second] : [second, first];
    expect(slotsOf(killed)).toBeGreaterThan(0);
    await killed.kill9();
    isOpen = true;
    for (const { from, response } of held) end(from, response);

    const deliveries = await receiver.until(URLS, 120_000);
    expect([...receiver.rids()].toSorted()).toEqual(rids.toSorted());
    expect(receiver.duplicates()).toBe(0);
    for (const { headers } of deliveries) {
      expect(headers).toMatchObject({
        'webhook-rung': 'pool:b',
        'webhook-climbed': 'direct forbidden, pool:a forbidden',
      });
    }
    const { activity } = (await other.rest('GET', `/crawler/${NORMAL}/climber`)).json;
    expect(activity).toMatchObject({ pushed: URLS, completed: URLS, failed: 0 });
    const hits = (n: number, by: string): number =>
      site.seen.filter(({ path, from }) => path === `/page?n=${n}` && from === by).length;
    for (let n = 0; n < URLS; n += 1) {
      // The first rung is known to be blocked, and so is the second one of the odd URLs.
      expect(hits(n, DIRECT), `${n} directly`).toBe(1);
      if (n % 2 === 1) expect(hits(n, A), `${n} by a`).toBe(1);
      else expect(hits(n, A), `${n} by a`).toBeLessThanOrEqual(2);
      expect(hits(n, B), `${n} by b`).toBeLessThanOrEqual(2);
    }
    // Some were tried when the process was killed.
    const again = rids.filter((_, n) => hits(n, n % 2 === 1 ? B : A) === 2);
    expect(again.length).toBeGreaterThan(0);
  });
});
