import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../../support/app.ts';
import { startCommandLine } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/listen.ts';
import { startSite } from '../../support/site.ts';
import { createTestClock } from '../../support/test-clock.ts';

test('listen points a crawler at itself, verifies and prints what comes, and refuses what is forged', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  for (const deliverBatch of [undefined, undefined, { max_results: 2, max_ms: 300 }]) {
    if (deliverBatch !== undefined) {
      await app.rest('PUT', `/crawler/${NORMAL}/hook`, { deliver_batch: deliverBatch });
    }
    const args = ['--json', 'listen', '--crawler', 'hook', '--count', '2'];
    await using listening = startCommandLine(args, { env });
    const url = await eventually(() => {
      const found = /listening at (\S+)$/m.exec(listening.stderr)?.[1];
      expect(found).toBeDefined();
      return found ?? '';
    });
    const now = String(Math.floor(Date.now() / 1_000));
    const forged = {
      rid: '0123456789abcdef01234567',
      'webhook-id': 'x',
      'webhook-timestamp': now,
      'webhook-signature': `v1,${createHmac('sha256', 'guess').update(`x.${now}.`).digest('base64')}`,
    };
    expect((await fetch(url, { method: 'POST', headers: forged, body: 'page' })).status).toBe(401);
    expect((await fetch(url)).status).toBe(405);
    const items = [{ url: `${site.url}/page/1` }, { url: `${site.url}/page/2` }];
    const path = `/crawler/${NORMAL}/hook/push_batch`;
    const pushed = await app.rest('POST', path, { items });
    const rids = pushed.json.results.map(({ rid }: { rid: string }) => rid);
    const { code, json } = await listening.ended;
    expect(code).toBe(0);
    // The service of another test may still probe a port that it knew before.
    const delivered = json.filter(({ kind }) => kind === 'delivery');
    expect(delivered.filter(({ signature }) => signature === 'invalid')).toMatchObject([
      { rid: forged.rid },
    ]);
    const genuine = delivered.filter(({ signature }) => signature === 'valid');
    expect(new Set(genuine.map(({ rid }) => rid))).toEqual(new Set(rids));
    expect(genuine[0].headers).toMatchObject({ cb_status: '200', original_status: '200' });
    expect(genuine[0].body).toContain('<title>Page ');
  }
});

test('listen takes over a crawler that is paused because its former callback URL failed', async () => {
  await using site = await startSite();
  const clock = createTestClock();
  await using app = await startApp({ clock, env: { PROBE_INTERVAL_SECONDS: '60' } });
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const path = `/crawler/${NORMAL}/hook`;
  const nobody = `http://127.0.0.1:${await freePort()}/`;
  await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: nobody });
  await eventually(async () => {
    clock.advance(10_000);
    expect((await app.rest('GET', path)).json.paused_by).toBe('monitor');
  });
  await app.rest('POST', `${path}/push_batch`, { items: [{ url: `${site.url}/page/1` }] });
  const args = ['--json', 'listen', '--crawler', 'hook', '--count', '1'];
  await using listening = startCommandLine(args, { env });
  const { json } = await listening.ended;
  expect(json.find(({ kind }) => kind === 'delivery').body).toContain('<title>Page 1');
  expect(listening.stderr).toContain('was paused');
});

test('listen takes no secret that anybody could sign by', async () => {
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_TOKEN: NORMAL };
  for (const secret of ['', 'whsec_guess']) {
    const args = ['listen', '--count', '1', '--secret', secret];
    await using listening = startCommandLine(args, { env });
    const { code, stderr } = await listening.ended;
    expect(code).toBe(2);
    expect(stderr).toContain('--secret must be');
  }
});
