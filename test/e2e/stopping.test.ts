import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { startReceiver } from '../support/receiver.ts';
import { startNpm } from '../support/service-process.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

/** A page that takes a second and a half from when the test says so. */
function heldPage() {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const route: SiteRoute = (_request, response) => {
    asked.resolve();
    void released.promise.then(() => setTimeout(() => response.end('slow'), 1_500));
  };
  return { asked: asked.promise, release: () => released.resolve(), route };
}

const SIGNALS: ['group' | 'npm', NodeJS.Signals][] = [
  ['group', 'SIGHUP'],
  ['npm', 'SIGTERM'],
  ['group', 'SIGINT'],
  ['group', 'SIGTERM'],
  ['npm', 'SIGINT'],
];

test.each(byLength(SIGNALS.slice(0, 2), SIGNALS))(
  'to the %s, %s lets a crawl end and reach its receiver',
  async (to, signal) => {
    const page = heldPage();
    await using site = await startSite({ routes: { '/slow': page.route } });
    await using receiver = await startReceiver();
    await using service = await startNpm();
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: receiver.url });
    const url = encodeURIComponent(`${site.url}/slow`);
    const { json } = await service.rest('GET', `/?token=${NORMAL}&crawler=hook&url=${url}`);
    await page.asked;
    service.signal(to, signal);
    await eventually(() => expect(service.output).toContain('"stopping"'));
    page.release();
    const [post] = await receiver.until(1);
    expect([post?.rid, post?.text]).toEqual([json.rid, 'slow']);
    await service.ended;
    expect(service.output).toContain('"stopped"');
    expect(service.output).not.toContain('at once');
  },
);

test('a second signal stops at once', async () => {
  const page = heldPage();
  await using site = await startSite({ routes: { '/slow': page.route } });
  await using service = await startNpm();
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'kept' });
  const url = encodeURIComponent(`${site.url}/slow`);
  await service.rest('GET', `/?token=${NORMAL}&crawler=kept&url=${url}`);
  await page.asked;
  service.signal('group', 'SIGINT');
  await eventually(() => expect(service.output).toContain('"stopping"'));
  await eventually(() => {
    try {
      service.signal('group', 'SIGINT');
    } catch {
      // The group is gone.
    }
    expect(service.output).toContain('stopping at once');
  });
  await service.ended;
});
