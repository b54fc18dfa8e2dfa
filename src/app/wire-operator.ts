import type { OperatorParts } from '../api/operator-handlers.ts';
import { VERSION } from '../config/version.ts';
import { wallNow } from '../domain/clock.ts';
import { defined } from '../domain/defined.ts';
import { osProcessName } from '../domain/os-process.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { WaysOut } from '../service/crawls/ways-out.ts';
import { watchEndedProcesses } from '../service/operator/ended-processes.ts';
import { createProcessReports } from '../service/operator/process-reports.ts';
import { createSetup } from '../service/operator/setup.ts';
import type { Service } from '../service/service.ts';
import type { Store } from '../store/store.ts';
import type { AppContext } from './app-context.ts';
import { setupChecks } from './setup-checks.ts';

/** Wires what the operator asks about. Where processes share a database, `stack` ends the reports and the watch of the others. */
export function wireOperator(
  context: AppContext,
  {
    service,
    store,
    scheduler,
    waysOut,
  }: {
    readonly service: Pick<Service, 'dispatcher' | 'accountPools'>;
    readonly store: Store;
    readonly scheduler: Scheduler;
    readonly waysOut: Pick<WaysOut, 'list' | 'hosts'>;
  },
  stack: AsyncDisposableStack,
): OperatorParts {
  const { config, clock, logger, pools } = context;
  const reports = createProcessReports({
    store: store.processes,
    clock,
    logger,
    identity: {
      processId: context.processId,
      ...defined({ osProcess: osProcessName() }),
      role: config.role,
      version: VERSION,
      startedAt: wallNow(clock),
    },
    load: () => {
      const { crawlers, crawls, deliveries } = service.dispatcher.activity();
      return { crawlers, crawls, deliveries, browserPages: pools.browserTurns.used };
    },
  });
  if (context.traits.shared) {
    stack.use(reports.start());
    stack.use(watchEndedProcesses({ store, scheduler, clock, logger }));
  }
  return {
    reports,
    version: VERSION,
    listProxies: waysOut.list,
    listProxyHosts: waysOut.hosts,
    readSetup: createSetup({
      checks: setupChecks({
        ...context,
        crawlers: store.crawlers,
        surveyPools: service.accountPools.survey,
      }),
      accounts: store.accounts,
    }),
  };
}
