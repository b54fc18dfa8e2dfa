import { describe, expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startProxy } from '../support/proxy.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const SESSION = { cookies_session: 'login', format: 'json' };

async function crawl(service: ServiceProcess, token: string, url: string) {
  const query = new URLSearchParams({ token, url, ...SESSION });
  const { json } = await service.rest('GET', `/?${query}`);
  expect(json).toMatchObject({ cb_status: 200 });
  return json;
}

describe.skipIf(mongodbUri === '')('two processes on one database', () => {
  test('share the cookies of a session, of either token for itself', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    const cookiesAt = async (service: ServiceProcess, token = NORMAL): Promise<string> => {
      const { body } = await crawl(service, token, `${site.url}/echo`);
      return JSON.parse(body).headers.cookie ?? '';
    };
    // A client that has the page of a login can continue in another process at once.
    await crawl(first, JAVASCRIPT, `${site.url}/cookies/set?browser=1`);
    await crawl(first, NORMAL, `${site.url}/cookies/set?login=1`);
    expect(await cookiesAt(second, JAVASCRIPT)).toBe('browser=1');
    expect(await cookiesAt(second)).toBe('login=1');
    // Both at the same time, each with cookies of its own.
    const names = Array.from({ length: 10 }, (_, n) => `c${n}`);
    await Promise.all(
      names.map((name, n) =>
        crawl(n % 2 === 0 ? first : second, NORMAL, `${site.url}/cookies/set?${name}=1`),
      ),
    );
    await eventually(async () => {
      for (const service of [first, second]) {
        const cookies = (await cookiesAt(service)).split('; ').sort();
        expect(cookies).toEqual([...names.map((name) => `${name}=1`), 'login=1']);
      }
    });
  });

  test('find the same proxy for a session, with its cookies', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const proxies = await Promise.all(
      [11, 12, 13, 14].map((last) => startProxy({ from: `127.0.0.${last}` })),
    );
    await using stack = new AsyncDisposableStack();
    for (const proxy of proxies) stack.use(proxy);
    const PROXIES = JSON.stringify({ fast: proxies.map(({ url }) => url) });
    const env = { MONGODB_URI: database.uri, PROXIES };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    for (const session of ['a', 'b', 'c', 'd', 'e']) {
      site.reset();
      const visit = async (service: ServiceProcess, path: string) => {
        const query = {
          token: NORMAL,
          url: site.url + path,
          format: 'json',
          proxy: 'fast',
          session,
        };
        return (await service.rest('GET', `/?${new URLSearchParams(query)}`)).json;
      };
      await visit(first, `/cookies/set?visitor=${session}`);
      const { body } = await visit(second, '/echo');
      expect(body).toContain(`visitor=${session}`);
      expect(new Set(site.seen.map(({ from }) => from)).size).toBe(1);
    }
  });
});
