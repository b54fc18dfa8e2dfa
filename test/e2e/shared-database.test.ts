import { describe, expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { startReceiver } from '../support/receiver.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const admin = { authorization: `Bearer ${ADMIN}` };

describe.skipIf(mongodbUri === '')('what one process changes, another knows at once', () => {
  test('a crawler that was deleted and made anew, in another mode too, takes pushes there', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    await using receiver = await startReceiver();
    const env = { MONGODB_URI: database.uri };
    await using here = await startApp({ env });
    await using there = await startApp({ env: { ...env, ROLE: 'api' } });
    const path = `/crawler/${NORMAL}`;
    const url = encodeURIComponent(`${site.url}/page`);
    for (const callback_url of [undefined, receiver.url, undefined]) {
      expect((await here.rest('POST', path, { name: 'again', callback_url })).status).toBe(200);
      // The other process remembers this crawler now, for a second.
      for (let n = 0; n < 2; n++) {
        const pushed = await there.rest('GET', `/?token=${NORMAL}&crawler=again&url=${url}`);
        expect([pushed.status, pushed.json]).toMatchObject([200, { rid: expect.any(String) }]);
      }
      expect((await here.rest('POST', `${path}/again/delete`)).status).toBe(200);
    }
    const gone = await there.rest('GET', `/?token=${NORMAL}&crawler=again&url=${url}`);
    expect(gone.status).toBe(404);
  });

  test('of pushes with one unique key through several processes, one is queued', async () => {
    await using database = testDatabase();
    const env = { MONGODB_URI: database.uri };
    await using here = await startApp({ env });
    await using there = await startApp({ env: { ...env, ROLE: 'api' } });
    const path = `/crawler/${NORMAL}`;
    await here.rest('POST', path, { name: 'once' });
    await here.rest('POST', `${path}/once/pause`);
    for (let round = 0; round < 5; round += 1) {
      const items = [{ url: 'http://127.0.0.1:9/', unique_key: `round ${round}` }];
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          (n % 2 === 0 ? here : there).rest('POST', `${path}/once/push_batch`, { items }),
        ),
      );
      const results = replies.map(({ json }) => json.results[0]);
      expect(new Set(results.map(({ rid }) => rid)).size).toBe(1);
      expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    }
    const { json } = await there.rest('GET', `${path}/once`);
    expect(json.activity).toMatchObject({ pushed: 5, waiting: 5 });
  });

  test('a crawler is deleted while URLs are pushed to it', async () => {
    await using database = testDatabase();
    const env = { MONGODB_URI: database.uri };
    await using here = await startApp({ env });
    await using there = await startApp({ env: { ...env, ROLE: 'api' } });
    const path = `/crawler/${NORMAL}`;
    for (let round = 0; round < 12; round += 1) {
      await here.rest('POST', path, { name: 'busy' });
      await here.rest('POST', `${path}/busy/pause`);
      let going = true;
      const pushes = Array.from({ length: 4 }, async (_, n) => {
        while (going) {
          const items = [{ url: `http://127.0.0.1:9/${n}` }];
          await there.rest('POST', `${path}/busy/push_batch`, { items });
        }
      });
      await there.rest('GET', `${path}/busy`);
      const deleted = await here.rest('POST', `${path}/busy/delete`);
      going = false;
      await Promise.all(pushes);
      const left = await here.rest('GET', `${path}/busy`);
      expect([deleted.status, left.status]).toEqual([200, 404]);
    }
  });

  test('a URL that is pushed here at once is crawled as the crawler was set there a moment ago', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    await using old = await startReceiver();
    await using current = await startReceiver();
    const env = { MONGODB_URI: database.uri };
    await using here = await startApp({ env });
    await using there = await startApp({ env: { ...env, ROLE: 'api' } });
    const path = `/crawler/${NORMAL}`;
    await here.rest('POST', path, { name: 'moved', callback_url: old.url });
    const push = async (page: string) => {
      const url = encodeURIComponent(`${site.url}/page/${page}`);
      const { json } = await here.rest('GET', `/?token=${NORMAL}&crawler=moved&url=${url}`);
      return json.rid as string;
    };
    const before = await push('before');
    await eventually(() => {
      expect(old.deliveries.map(({ rid }) => rid)).toEqual([before]);
    });
    // Its run ends, and what this process remembers of the crawler for a second is renewed.
    await eventually(async () => {
      const { json } = await here.rest('GET', `${path}/moved`);
      expect(json.processes).toEqual([]);
    });
    expect((await there.rest('PUT', `${path}/moved`, { callback_url: current.url })).status).toBe(
      200,
    );
    const after = await push('after');
    await eventually(() => {
      expect(current.deliveries.map(({ rid }) => rid)).toEqual([after]);
    });
    expect(old.deliveries).toHaveLength(1);
  });

  test('a push goes by the settings that the crawler has, however long ago this process read it', async () => {
    await using database = testDatabase();
    const env = { MONGODB_URI: database.uri, ROLE: 'api' };
    await using here = await startApp({ env });
    await using there = await startApp({ env });
    const path = `/crawler/${NORMAL}`;
    const headers = encodeURIComponent('not a header');
    const url = encodeURIComponent('http://a.example/');
    const push = (more: string) =>
      here.rest('GET', `/?token=${NORMAL}&crawler=kept&url=${url}${more}`);
    await here.rest('POST', path, { name: 'kept' });
    // A crawler that stores takes no notice of what is meant for deliveries.
    expect((await push(`&callback_headers=${headers}`)).status).toBe(200);
    expect((await there.rest('POST', `${path}/kept/pause`)).status).toBe(200);
    expect((await push('')).status).toBe(200);
    await there.rest('POST', `${path}/kept/delete`);
    expect((await push('')).status).toBe(404);
    await there.rest('POST', path, { name: 'kept', callback_url: 'http://b.example/' });
    expect((await push(`&callback_headers=${headers}`)).status).toBe(422);
    expect((await push('')).status).toBe(200);
    const { json } = await there.rest('GET', `${path}/kept`);
    expect(json.activity).toMatchObject({ waiting: 1, pushed: 1 });
    await there.rest('POST', `${path}/kept/delete`);
    for (const more of ['', `&callback_headers=${headers}`]) {
      expect((await push(more)).status).toBe(404);
    }
  });

  test('a URL whose process is killed as soon as it has answered is crawled by another', async () => {
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using other = await startProcess(env);
    await using killed = await startProcess(env);
    for (const name of ['a', 'b', 'c']) {
      await other.rest('POST', `/crawler/${NORMAL}`, { name });
    }
    const answers = ['a', 'b', 'c'].map((name) => {
      const url = encodeURIComponent(`${site.url}/page/${name}`);
      return killed.rest('GET', `/?token=${NORMAL}&crawler=${name}&url=${url}`);
    });
    const replies = await Promise.all(answers);
    await killed.kill9();
    const rids = replies.map(({ json }) => json.rid as string);
    await eventually(async () => {
      for (const rid of rids) {
        const path = `/storage?token=${NORMAL}&rid=${rid}`;
        expect((await other.rest('GET', path)).status).toBe(200);
      }
    });
  });

  test('a token that was rotated works nowhere any more', async () => {
    await using database = testDatabase();
    const env = { MONGODB_URI: database.uri };
    await using here = await startApp({ env });
    await using there = await startApp({ env });
    let { normal_token: token } = (await here.rest('POST', '/accounts', { name: 'guest' }, admin))
      .json as { normal_token: string };
    for (let n = 0; n < 3; n++) {
      for (const app of [here, there]) {
        expect((await app.rest('GET', `/crawler/${token}`)).status).toBe(200);
      }
      const rotated = await here.rest(
        'POST',
        '/accounts/guest/rotate_token',
        { token_type: 'normal' },
        admin,
      );
      const old = token;
      token = (rotated.json as { token: string }).token;
      for (const app of [there, here]) {
        expect((await app.rest('GET', `/crawler/${old}`)).status).toBe(401);
        expect((await app.rest('GET', `/crawler/${token}`)).status).toBe(200);
      }
    }
  });

  test('the service makes no backups of it and says what does', async () => {
    await using database = testDatabase();
    await using app = await startApp({ env: { MONGODB_URI: database.uri } });
    for (const method of ['POST', 'GET']) {
      const { status, json, text } = await app.rest(method, '/backup', undefined, admin);
      expect([status, json]).toMatchObject([409, { code: 'backup_not_embedded' }]);
      expect(text).toContain('docs/operate.md');
    }
    const { text } = await app.rest('GET', '/metrics', undefined, admin);
    expect(text).toContain('queued_crawler_database_up 1');
    expect(text).not.toContain('queued_crawler_last_backup');
  });
});
