import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { OperatorService, SetupState } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { Logger } from '../domain/logger.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { ProcessReports } from '../service/operator/process-reports.ts';
import type { SetupState as DomainSetupState, ReadSetup } from '../service/operator/setup.ts';
import { audited } from './audit.ts';
import { type Call, type Method, toMethods } from './method.ts';

const STATES: Readonly<Record<DomainSetupState, SetupState>> = {
  ok: SetupState.OK,
  missing: SetupState.MISSING,
  failed: SetupState.FAILED,
  unchecked: SetupState.UNCHECKED,
};

/** What the operator's methods work with. */
export interface OperatorParts {
  readonly reports: Pick<ProcessReports, 'installation'>;
  readonly readSetup: ReadSetup;
  readonly version: string;
}

/** The methods of the operator service. Each needs the admin token and writes one audit line. */
export function operatorHandlers({
  authenticator,
  logger,
  reports,
  readSetup,
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
