import { expect, test } from 'vitest';
import type { ServiceClock } from '../../../src/domain/clock.ts';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { HostState } from '../../../src/domain/host-state.ts';
import { createHostReads } from '../../../src/service/reads/host-list.ts';
import type { HostReport } from '../../../src/store/store.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

/** The reads of a process that knows `here` of the hosts of a crawler, with one report. */
function readsOf(
  clock: ServiceClock,
  report: Pick<HostReport, 'processId' | 'hosts'>,
  here: HostState[] | undefined,
) {
  const reads = createHostReads({
    hosts: {
      reports: async () => [report],
      longest: async () => ({ hosts: [], total: 0 }),
    } as unknown as Parameters<typeof createHostReads>[0]['hosts'],
    access: { find: async () => ({ crawlerId: 'c', name: 'shop' }) as Crawler },
    dispatcher: { hostStates: () => here },
    clock,
    processId: 'this',
  });
  const owner = {} as Parameters<typeof reads.list>[0];
  return async () =>
    (await reads.list(owner, 'shop', { order: 'rate', limit: 10, contains: '' })).hosts;
}

const STATE: Omit<HostState, 'lastMs'> = {
  host: 'a.example',
  running: 0,
  tries: 127,
  tookMs: 12_700,
  failures: {},
  perSecond: 25,
};

test('a host has a rate as long as it is tried, not for ever the last one', async () => {
  const clock = createFrozenClock();
  const state = { ...STATE, lastMs: clock.now().getTime() };
  const list = readsOf(clock, { processId: 'another', hosts: [state] }, []);
  expect(await list()).toMatchObject([{ perSecond: 25 }]);
  clock.advance(60_000);
  expect(await list()).toMatchObject([{ perSecond: 0 }]);
});

test('what a process has forgotten of a crawler is listed from its report', async () => {
  const clock = createFrozenClock();
  const state = { ...STATE, lastMs: clock.now().getTime() };
  const report = { processId: 'this', hosts: [state] };
  expect(await readsOf(clock, report, undefined)()).toMatchObject([{ tries: 127 }]);
  const later = { ...state, tries: 128 };
  expect(await readsOf(clock, report, [later])()).toMatchObject([{ tries: 128 }]);
});
