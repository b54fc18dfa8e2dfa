import { expect } from 'vitest';
import { NORMAL, type RestReply, type TestApp } from './app.ts';
import { eventually } from './eventually.ts';

/** One crawler of the Normal token, as a client sees it over REST. */
export interface CrawlerClient {
  /** `/crawler/TOKEN/NAME` */
  readonly path: string;
  /** Pushes a URL and gives its rid; `more` is added to the query. Throws when it is refused. */
  push(url: string, more?: string): Promise<string>;
  /** Pushes URLs in one call, in their order, and gives their rids. Throws when one is refused. */
  pushAll(urls: readonly string[]): Promise<string[]>;
  /** Pushes a URL, whatever the answer. */
  tryPush(url: string, more?: string): Promise<RestReply>;
  post(operation: string, body?: object): Promise<RestReply>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read replies of many shapes
  details(): Promise<any>;
  /** The job's state as find_by_rid tells it. */
  find(rid: string): Promise<RestReply>;
  /** The stored record, once there is one. */
  stored(rid: string): Promise<RestReply>;
}

/** Makes a crawler and its client; `settings` are fields of the create body. */
export async function createCrawler(
  app: Pick<TestApp, 'rest'>,
  name: string,
  settings: object = {},
): Promise<CrawlerClient> {
  const made = await app.rest('POST', `/crawler/${NORMAL}`, { name, ...settings });
  expect(made.status, made.text).toBe(200);
  const path = `/crawler/${NORMAL}/${name}`;
  const tryPush = (url: string, more = ''): Promise<RestReply> =>
    app.rest(
      'GET',
      `/?token=${NORMAL}&crawler=${name}&callback=true&url=${encodeURIComponent(url)}${more}`,
    );
  return {
    path,
    tryPush,
    async push(url, more) {
      const reply = await tryPush(url, more);
      expect(reply.status, reply.text).toBe(200);
      return reply.json.rid as string;
    },
    async pushAll(urls) {
      const items = urls.map((url) => ({ url }));
      const reply = await app.rest('POST', `${path}/push_batch`, { items });
      expect(reply.status, reply.text).toBe(200);
      const rids = reply.json.results.map(({ rid }: { rid?: string }) => rid);
      expect(rids).not.toContain(undefined);
      return rids;
    },
    post: (operation, body) => app.rest('POST', `${path}/${operation}`, body),
    details: async () => (await app.rest('GET', path)).json,
    find: (rid) => app.rest('GET', `${path}/find_by_rid/${rid}`),
    stored: (rid) =>
      eventually(async () => {
        const reply = await app.rest('GET', `/storage?token=${NORMAL}&rid=${rid}&format=json`);
        expect(reply.status).toBe(200);
        return reply;
      }),
  };
}
