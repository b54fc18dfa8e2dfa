import { expect, test } from 'vitest';
import type { SessionCookie } from '../../../src/domain/session-cookies.ts';
import { createCookieSessions } from '../../../src/service/crawls/cookie-sessions.ts';
import type { CookieSessionStore } from '../../../src/store/store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { openEmbeddedStore } from '../../support/use-cases.ts';

function cookie(name: string): SessionCookie {
  return { name, value: '1', domain: 'a.test', path: '/', httpOnly: false, secure: false };
}

const own = { accountId: 'a', tokenType: 'normal' } as const;

const setting = (name: string) => ({ set: [cookie(name)], removed: [] });
const namesOf = (cookies: readonly SessionCookie[]) => cookies.map(({ name }) => name).sort();

/** A store whose calls are counted, and two processes over it. */
async function openTwo() {
  const { store, ...embedded } = await openEmbeddedStore();
  const calls = { open: 0, change: 0 };
  const counted: CookieSessionStore = {
    open(...args) {
      calls.open += 1;
      return store.cookieSessions.open(...args);
    },
    change(...args) {
      calls.change += 1;
      return store.cookieSessions.change(...args);
    },
  };
  const clock = createFrozenClock();
  const start = (of = counted) => createCookieSessions({ store: of, clock, logger: silentLogger });
  return { ...embedded, clock, calls, start };
}

test('a session is read once a second, and written only when a crawl changed it', async () => {
  await using bench = await openTwo();
  const sessions = bench.start();
  for (let crawl = 0; crawl < 5; crawl += 1) {
    const session = sessions.open(own, 's');
    expect(namesOf(await session.read())).toEqual(crawl === 0 ? [] : ['one']);
    if (crawl === 0) session.change(setting('one'));
    await session.written();
  }
  expect(bench.calls).toEqual({ open: 1, change: 1 });
  bench.clock.advance(1_000);
  await Promise.all([sessions.open(own, 's').read(), sessions.open(own, 's').read()]);
  expect(bench.calls).toEqual({ open: 2, change: 1 });
});

test('crawls that end together share a write, and see each other at once', async () => {
  await using bench = await openTwo();
  const sessions = bench.start();
  const crawls = ['x', 'y', 'z'].map((name) => ({ name, session: sessions.open(own, 's') }));
  for (const { name, session } of crawls) session.change(setting(name));
  expect(namesOf(await sessions.open(own, 's').read())).toEqual(['x', 'y', 'z']);
  await Promise.all(crawls.map(({ session }) => session.written()));
  expect(bench.calls.change).toBe(1);
});

test('what one process wrote is read by another a second later, and what both wrote stays', async () => {
  await using bench = await openTwo();
  const [one, two] = [bench.start(), bench.start()];
  const first = one.open(own, 's');
  const second = two.open(own, 's');
  expect([await first.read(), await second.read()]).toEqual([[], []]);
  first.change(setting('one'));
  second.change(setting('two'));
  await Promise.all([first.written(), second.written()]);
  bench.clock.advance(1_000);
  for (const sessions of [one, two]) {
    expect(namesOf(await sessions.open(own, 's').read())).toEqual(['one', 'two']);
    expect(await sessions.open({ ...own, accountId: 'b' }, 's').read()).toEqual([]);
  }
});

test('a session lasts 300 s after its last use', async () => {
  await using bench = await openTwo();
  const sessions = bench.start();
  sessions.open(own, 's').change(setting('one'));
  for (const [ms, names] of [
    [290_000, ['one']],
    [290_000, ['one']],
    [301_000, []],
  ] as const) {
    bench.clock.advance(ms);
    expect(namesOf(await sessions.open(own, 's').read())).toEqual(names);
  }
});

test('a crawl ends well when its cookies cannot be stored, and no log line names them', async () => {
  await using bench = await openTwo();
  const lines: string[] = [];
  const warn = (fields: object, message: string): void => {
    lines.push(`${JSON.stringify(fields)} ${message}`);
  };
  const sessions = createCookieSessions({
    store: { open: async () => [], change: () => Promise.reject(new Error('no database')) },
    clock: bench.clock,
    logger: { ...silentLogger, warn },
  });
  const session = sessions.open(own, 'my-session');
  session.change({ set: [{ ...cookie('sid'), value: 'hidden-value' }], removed: [] });
  await session.written();
  expect(lines).toHaveLength(1);
  expect(lines.join()).not.toMatch(/hidden-value|my-session|sid/);
});
