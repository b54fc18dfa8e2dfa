import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  AccountLimits,
  AccountLimitsSchema,
  AccountQuotasSchema,
} from '../../gen/queuedcrawler/v1/quotas_pb.ts';
import type { AccountLimits as DomainAccountLimits } from '../domain/quotas.ts';
import type { QuotaReport } from '../service/accounts/quotas.ts';

const NAMES = [
  'crawlers',
  'concurrency',
  'storageBytes',
  'queueBytes',
  'requestsPerSecond',
  'probesPerMinute',
  'replaysPerHour',
] as const satisfies readonly (keyof DomainAccountLimits)[];

/** An account's own limits on the wire. */
export function limitsMessage(
  limits: Partial<DomainAccountLimits>,
): MessageInitShape<typeof AccountLimitsSchema> {
  const own = NAMES.flatMap((name) => {
    const limit = limits[name];
    return limit === undefined ? [] : [[name, BigInt(limit)] as const];
  });
  return Object.fromEntries(own);
}

/** Limits from the wire; absent ones stay absent. */
export function toLimits(message: AccountLimits): Partial<DomainAccountLimits> {
  const own = NAMES.flatMap((name) => {
    const limit = message[name];
    return limit === undefined ? [] : [[name, Number(limit)] as const];
  });
  return Object.fromEntries(own);
}

/** Limits and their use on the wire. */
export function quotasMessage(report: QuotaReport): MessageInitShape<typeof AccountQuotasSchema> {
  const uses = NAMES.map((name) => {
    const { limit, used } = report[name];
    const use = used === undefined ? {} : { used: BigInt(used) };
    return [name, { limit: BigInt(limit), ...use }] as const;
  });
  return Object.fromEntries(uses);
}
