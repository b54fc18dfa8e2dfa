import { expect, test } from 'vitest';
import { NORMAL, type TestApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

interface Again {
  readonly again_of: string;
  readonly rid: string;
  readonly duplicate: boolean;
}

/** Pushes failed crawls again, and returns what became of each. */
async function again(app: TestApp, shop: CrawlerClient, selection: object): Promise<Again[]> {
  const reply = await app.rest('POST', `${shop.path}/push_again`, selection);
  expect(reply.status, reply.text).toBe(200);
  const lines = reply.text.split('\n').filter((line) => line !== '');
  return lines.flatMap((line) => (JSON.parse(line) as { results: Again[] }).results);
}

/** A site whose `/door` answers 500 until it is opened, and then what it was asked. */
function startDoor() {
  let isOpen = false;
  const asked: object[] = [];
  const door: SiteRoute = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      const body = Buffer.concat(chunks).toString('base64');
      const { 'content-type': type, 'x-asked': header } = headers;
      asked.push({ method, url, type, header, body });
      response.writeHead(isOpen ? 200 : 500, { 'content-type': 'text/plain' }).end('the page');
    });
  };
  return {
    door,
    asked,
    open: () => {
      isOpen = true;
    },
  };
}

const shared = shareApp();

test('failed crawls are pushed again as they were, once, and name the old ones', async () => {
  const { door, asked, open } = startDoor();
  await using site = await startSite({ routes: { '/door': door } });
  const app = shared();
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const url = `${site.url}/door?q=%20a`;
  const post = {
    url,
    method: 'POST',
    body: Buffer.from([0, 1, 254, 255]).toString('base64'),
    post_content_type: 'application/octet-stream',
    parameters: { request_headers: 'x-asked:yes', get_headers: true },
    metadata: '{"order":7}',
    batch: 'monday',
    priority: 9,
  };
  const items = [post, { url }, { url: `${site.url}/page/1` }, { url: 'http://127.0.0.1:1/' }];
  const reply = await app.rest('POST', `${shop.path}/push_batch`, { items });
  const [first, second, , dead] = (reply.json.results as { rid: string }[]).map(({ rid }) => rid);
  await eventually(async () => {
    expect((await shop.details()).activity).toMatchObject({ failed: 3, completed: 1 });
  });
  open();
  const ofBatch = await again(app, shop, { batch: 'monday', into_batch: 'monday-2' });
  expect(ofBatch.map((each) => each.again_of)).toEqual([first]);
  const rid = ofBatch[0]?.rid ?? '';
  const stored = await shop.stored(rid);
  expect(stored.json).toMatchObject({
    cb_status: 200,
    again_of: first,
    batch: 'monday-2',
    metadata: '{"order":7}',
  });
  const posts = asked.filter((each) => 'method' in each && each.method === 'POST');
  expect(posts).toHaveLength(2);
  expect(posts[1]).toEqual(posts[0]);
  expect(posts[0]).toMatchObject({ header: 'yes', type: 'application/octet-stream' });
  // Of all failed ones that for which it was done already is answered with its rid.
  const all = await again(app, shop, { reason: 'target_error' });
  expect(all).toHaveLength(2);
  expect(all.find((each) => each.again_of === first)).toMatchObject({ rid, duplicate: true });
  const plain = all.find((each) => each.again_of === second);
  expect((await shop.stored(plain?.rid ?? '')).json).toMatchObject({ again_of: second });
  const byRid = await again(app, shop, { rids: [dead], from: '2020-01-01T00:00:00Z' });
  expect(byRid.map((each) => each.again_of)).toEqual([dead]);
  expect(
    await again(app, shop, { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z' }),
  ).toEqual([]);
  const missing = await app.rest('POST', `${shop.path}/push_again`, { batch: 'no' });
  expect([missing.status, missing.json.code]).toEqual([404, 'batch_not_found']);
});

test('failed crawls of a webhook crawler are pushed again by one line of the command line', async () => {
  const { door, open } = startDoor();
  await using site = await startSite({ routes: { '/door': door } });
  await using receiver = await startReceiver();
  const app = shared();
  const settings = { callback_url: receiver.url, max_retries: 0 };
  const hook = await createCrawler(app, 'hook', settings);
  const rid = await hook.push(`${site.url}/door`, '&callback_headers=X-One%7C1');
  await receiver.until(1);
  open();
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const run = await runCommandLine(
    ['--json', 'jobs', 'again', 'hook', '--reason', 'target_error'],
    { env },
  );
  expect([run.code, run.json]).toMatchObject([0, [{ again_of: rid }]]);
  await receiver.until(2);
  const next = receiver.byRid(run.json[0].rid as string)[0];
  expect(next?.headers).toMatchObject({
    'webhook-again-of': rid,
    'x-one': '1',
    cb_status: '200',
  });
  const delivery = await app.rest('GET', `${hook.path}/deliveries/${run.json[0].rid}`);
  expect(delivery.json).toMatchObject({ again_of: rid });
});
