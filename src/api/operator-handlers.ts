import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { OperatorService, SetupState } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { Logger } from '../domain/logger.ts';
import type { ProxyReport } from '../domain/proxy-pools.ts';
import type { WaysOut } from '../service/crawls/ways-out.ts';
import type { ProcessReports } from '../service/operator/process-reports.ts';
import type { SetupState as DomainSetupState, ReadSetup } from '../service/operator/setup.ts';
import { asAdmin } from './audit.ts';
import { type Method, toMethods } from './method.ts';
import { toProxyHostMessage, toProxyMessage } from './proxy-messages.ts';

const STATES: Readonly<Record<DomainSetupState, SetupState>> = {
  ok: SetupState.OK,
  missing: SetupState.MISSING,
  failed: SetupState.FAILED,
  unchecked: SetupState.UNCHECKED,
};

/** Most proxies, and hosts, in one reply. */
const MAX_PROXIES = 1_000;
const MAX_HOSTS = 100;

/** What the operator's methods work with. */
export interface OperatorParts {
  readonly reports: Pick<ProcessReports, 'installation'>;
  readonly readSetup: ReadSetup;
  readonly listProxies: WaysOut['list'];
  readonly listProxyHosts: WaysOut['hosts'];
  readonly version: string;
}

/** The methods of the operator service. Each needs the admin token and writes one audit line. */
export function operatorHandlers({
  logger,
  reports,
  readSetup,
  listProxies,
  listProxyHosts,
  version,
}: OperatorParts & {
  readonly logger: Logger;
}): Method[] {
  return toMethods(OperatorService, {
    getInstallation: (_request, call) =>
      asAdmin(logger, { method: 'GetInstallation', account: '' }, call, async () => {
        const { database, latencyMs, processes } = await reports.installation();
        return {
          version,
          database: { ...database, latencyMs },
          processes: processes.map(
            ({ processId, osProcess: _osProcess, startedAt, reportedAt, ...load }, index) => ({
              ...load,
              id: processId,
              startedAt: timestampFromDate(startedAt),
              reportedAt: timestampFromDate(reportedAt),
              memoryBytes: BigInt(load.memoryBytes),
              isAnswering: index === 0,
            }),
          ),
        };
      }),

    listProxies: ({ pool }, call) =>
      asAdmin(logger, { method: 'ListProxies', account: '' }, call, async () => {
        const found = listProxies().filter((each) => pool === '' || each.pool === pool);
        const isInTrouble = ({ trouble, blockedAt }: ProxyReport): boolean =>
          trouble !== undefined || blockedAt.length > 0;
        const ordered = [
          ...found.filter(isInTrouble),
          ...found.filter((each) => !isInTrouble(each)),
        ];
        return {
          proxies: ordered.slice(0, MAX_PROXIES).map(toProxyMessage),
          totalCount: found.length,
          hosts: listProxyHosts()
            .filter((each) => pool === '' || each.pool === pool)
            .slice(0, MAX_HOSTS)
            .map(toProxyHostMessage),
        };
      }),

    getSetup: ({ check }, call) =>
      asAdmin(logger, { method: 'GetSetup', account: '' }, call, async () => {
        const items = await readSetup(check);
        return {
          items: items.map(({ state, settings, ...item }) => ({
            ...item,
            settings: [...settings],
            state: STATES[state],
          })),
        };
      }),
  });
}
