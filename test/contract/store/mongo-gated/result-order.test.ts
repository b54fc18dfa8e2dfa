import { describe, expect, test } from 'vitest';
import type { ResultPlace, ResultScope, Store } from '../../../../src/store/store.ts';
import { commandOn } from '../../../support/mongo-gate.ts';
import { mongodbUri } from '../../../support/mongodb.ts';
import { EXPIRES, makeRecord, toStored } from '../outcomes.ts';
import { at, finishJobs, newId, only } from '../store-harness.ts';
import { isCommit, withProcesses } from './gated.ts';

const newScope = (): ResultScope => ({ accountId: newId(), tokenType: 'normal' });

async function put(store: Store, scope: ResultScope): Promise<string> {
  const rid = newId();
  await store.results.put(scope, makeRecord({ rid, url: 'https://a.example/' }), at(1), EXPIRES);
  return rid;
}

async function read(store: Store, scope: ResultScope, after?: ResultPlace) {
  const { results, place } = await store.results.following(scope, after, 100);
  return { rids: results.map(({ rid }) => rid), place };
}

describe.skipIf(mongodbUri === '')('the order of results among processes', () => {
  test(
    'has a result whose job ended late behind those that were read before, though it is older',
    withProcesses(async ({ bench, stopped, gate }) => {
      const crawler = await bench.crawler();
      const scope = { accountId: crawler.accountId, tokenType: 'normal' } as const;
      const { jobs, lease } = await bench.running(crawler, 1);
      const job = only(jobs);
      const ending = gate.hold(isCommit);
      const end = finishJobs(stopped, [toStored(job)], at(0), lease);
      await ending.reached;
      const others = [await put(bench.store, scope), await put(bench.store, scope)];
      const before = await read(bench.store, scope);
      expect(before.rids).toEqual(others);
      ending.release();
      await end;
      expect((await read(bench.store, scope, before.place)).rids).toEqual([job.rid]);
      expect((await read(bench.store, scope)).rids).toEqual([...others, job.rid]);
    }),
  );

  test(
    'is completed by another process when the one that numbers is stopped, and stays as it was',
    withProcesses(async ({ bench, stopped, gate }) => {
      const scope = newScope();
      const first = [await put(bench.store, scope), await put(bench.store, scope)];
      const numbering = gate.hold(commandOn('update', 'results', first[0] ?? ''));
      const late = read(stopped, scope);
      await numbering.reached;
      // It has not committed its numbers, so nobody sees them.
      const second = [await put(bench.store, scope)];
      numbering.release();
      const whole = await read(bench.store, scope);
      const seen = (await late).rids;
      expect([...first, ...second].slice(0, seen.length)).toEqual(seen);
      const rest = await read(bench.store, scope, whole.place);
      expect([...whole.rids, ...rest.rids]).toEqual([...first, ...second]);
      expect((await read(stopped, scope)).rids).toEqual([...first, ...second]);
    }),
  );

  test(
    'is numbered by one of two who do so at once',
    withProcesses(async ({ bench, stopped, gate }) => {
      const scope = newScope();
      const rids = [await put(bench.store, scope)];
      const { place } = await read(bench.store, scope);
      rids.push(await put(bench.store, scope));
      const taking = gate.hold(commandOn('update', 'result_orders'));
      const late = read(stopped, scope, place);
      await taking.reached;
      expect((await read(bench.store, scope, place)).rids).toEqual(rids.slice(1));
      taking.release();
      expect((await late).rids).toEqual(rids.slice(1));
      rids.push(await put(bench.store, scope));
      const all = await read(bench.store, scope);
      const more = await read(bench.store, scope, all.place);
      expect([...all.rids, ...more.rids]).toEqual(rids);
    }),
  );
});
