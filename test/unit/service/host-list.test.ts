import { expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { HostState } from '../../../src/domain/host-state.ts';
import { createHostReads } from '../../../src/service/reads/host-list.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

test('a host has a rate as long as it is tried, not for ever the last one', async () => {
  const clock = createFrozenClock();
  const state: HostState = {
    host: 'a.example',
    running: 0,
    tries: 127,
    tookMs: 12_700,
    failures: {},
    perSecond: 25,
    lastMs: clock.now().getTime(),
  };
  const crawler = { crawlerId: 'c', name: 'shop' } as Crawler;
  const reads = createHostReads({
    hosts: {
      reports: async () => [{ processId: 'another', hosts: [state] }],
      longest: async () => ({ hosts: [], total: 0 }),
    } as unknown as Parameters<typeof createHostReads>[0]['hosts'],
    access: { find: async () => crawler },
    dispatcher: { hostStates: () => [] },
    clock,
    processId: 'this',
  });
  const owner = {} as Parameters<typeof reads.list>[0];
  const rate = async () => {
    const query = { order: 'rate', limit: 10, contains: '' } as const;
    return (await reads.list(owner, 'shop', query)).hosts.map(({ perSecond }) => perSecond);
  };
  expect(await rate()).toEqual([25]);
  clock.advance(60_000);
  expect(await rate()).toEqual([0]);
});
