import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { OperatorService, SetupState } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { Logger } from '../domain/logger.ts';
import type { ProxyReport } from '../domain/proxy-pools.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { WaysOut } from '../service/crawls/ways-out.ts';
import type { ProcessReports } from '../service/operator/process-reports.ts';
import type { SetupState as DomainSetupState, ReadSetup } from '../service/operator/setup.ts';
import { audited } from './audit.ts';
import { type Call, type Method, toMethods } from './method.ts';
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
  authenticator,
  logger,
  reports,
  readSetup,
  listProxies,
  listProxyHosts,
  version,
}: OperatorParts & {
  readonly authenticator: Pick<Authenticator, 'authenticateAdmin'>;
  readonly logger: Logger;
}): Method[] {
  function asAdmin<Result>(call: Call, method: string, work: () => Promise<Result>) {
    authenticator.authenticateAdmin(call.bearer, call.remote);
    return audited(logger, { method, account: '' }, call, work);
  }

  return toMethods(OperatorService, {
    getInstallation: (_request, call) =>
      asAdmin(call, 'GetInstallation', async () => {
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
      asAdmin(call, 'ListProxies', async () => {
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
      asAdmin(call, 'GetSetup', async () => {
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
