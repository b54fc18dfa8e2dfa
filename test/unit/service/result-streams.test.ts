import { expect, test } from 'vitest';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { createResultStreams } from '../../../src/service/reads/result-streams.ts';
import { decorateStore } from '../../../src/store/decorate-store.ts';
import { EXPIRES, makeRecord } from '../../contract/store/outcomes.ts';
import { at, makeAccount, newId } from '../../contract/store/store-harness.ts';
import { eventually } from '../../support/eventually.ts';
import { openEmbeddedStore } from '../../support/use-cases.ts';

const STREAMS = 8;

test('streams that wait share one query, however many there are, and all get what comes', async () => {
  await using opened = await openEmbeddedStore();
  const { store } = opened;
  let queries = 0;
  const counted = decorateStore(store, (operation, call) => {
    if (operation === 'results.following') queries += 1;
    return call();
  });
  const owner: TokenOwner = { account: makeAccount(), tokenType: 'normal' };
  const access = { findRecent: () => Promise.reject(new Error('no crawler was named')) };
  const streams = createResultStreams({ store: counted, access, clock: { now: () => at(0) } });
  const leaving = new AbortController();
  const request = { crawler: '', batch: '', resumeToken: '', follow: true };
  const readers = Array.from({ length: STREAMS }, () =>
    streams.open(owner, request, leaving.signal),
  );
  // Each says that there is nothing, and then waits.
  await Promise.all(readers.map((reader) => reader.next()));
  const next = readers.map((reader) => reader.next());
  await eventually(() => expect(queries).toBeGreaterThan(STREAMS));
  const before = queries;
  const since = performance.now();
  await eventually(() => expect(queries).toBeGreaterThanOrEqual(before + 3));
  // The waits grow from 200 ms: one query for each, and not one for each stream.
  const most = (performance.now() - since) / 200 + 1;
  expect(queries - before).toBeLessThanOrEqual(most);

  const rid = newId();
  const scope = { accountId: owner.account.accountId, tokenType: 'normal' } as const;
  await store.results.put(scope, makeRecord({ rid, url: 'http://a/' }), at(1), EXPIRES);
  for (const { value } of await Promise.all(next)) {
    expect(value?.results.map((each) => each.rid)).toEqual([rid]);
  }
  const ends = readers.map((reader) => reader.next());
  leaving.abort(new Error('gone'));
  // Some had more to say before they were left.
  await Promise.allSettled(ends);
  await Promise.allSettled(readers.map((reader) => reader.return()));
  const left = queries;
  // Nobody waits any more, so nobody looks; the places are free again.
  const again = streams.open(owner, { ...request, follow: false }, new AbortController().signal);
  expect((await Array.fromAsync(again)).length).toBe(2);
  expect(queries - left).toBeLessThanOrEqual(3);
});
