import { describe, expect, test } from 'vitest';
import type { ProcessReport } from '../../../src/domain/process-report.ts';
import { at, type OpenStore, withStore } from './store-harness.ts';

/** What processes say about themselves. */
export function processesContract(open: OpenStore): void {
  describe('processes', () => {
    test(
      'are listed as they last reported, as long as they did so lately; the database names itself',
      withStore(open, async ({ store }) => {
        const report: ProcessReport = {
          processId: 'host:1:a',
          role: 'all',
          version: '1.2.3',
          startedAt: at(0),
          reportedAt: at(1),
          crawlers: 1,
          crawls: 2,
          deliveries: 3,
          browserPages: 4,
          memoryBytes: 5_000_000_000,
          cpuCores: 0.5,
          eventLoopUse: 0.25,
        };
        await store.processes.report(report);
        const later = { ...report, crawls: 7, reportedAt: at(100) };
        await store.processes.report(later);
        expect(await store.processes.list(at(100))).toEqual([later]);
        expect(await store.processes.list(at(101))).toEqual([]);
        const { kind, version } = await store.processes.database();
        expect(['sqlite', 'mongodb']).toContain(kind);
        expect(version).toMatch(/^\d+\.\d+/);
      }),
    );

    test(
      'share a secret, which is the first that one of them offers',
      withStore(open, async ({ store }) => {
        const offered = ['a', 'b', 'c'];
        const secrets = await Promise.all(offered.map((each) => store.processes.secret(each)));
        expect(new Set(secrets).size).toBe(1);
        expect(offered).toContain(secrets[0]);
        expect(await store.processes.secret('d')).toBe(secrets[0]);
      }),
    );
  });
}
