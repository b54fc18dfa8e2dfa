import { describe } from 'vitest';
import { accountsContract } from './accounts-contract.ts';
import { attentionContract } from './attention-contract.ts';
import { auditContract } from './audit-contract.ts';
import { balanceContract } from './balance-contract.ts';
import { batchesContract } from './batches-contract.ts';
import { claimsContract } from './claims-contract.ts';
import { cookieSessionsContract } from './cookie-sessions-contract.ts';
import { crawlersContract } from './crawlers-contract.ts';
import { deliveriesContract } from './deliveries-contract.ts';
import { endsContract } from './ends-contract.ts';
import { hostsContract } from './hosts-contract.ts';
import { leasesContract } from './leases-contract.ts';
import { listingsContract } from './listings-contract.ts';
import { modelContract } from './model-contract.ts';
import { noticesContract } from './notices-contract.ts';
import { probesContract } from './probes-contract.ts';
import { processesContract } from './processes-contract.ts';
import { proxyPoolsContract } from './proxy-pools-contract.ts';
import { purgeContract } from './purge-contract.ts';
import { pushContract } from './push-contract.ts';
import { pushControlsContract } from './push-controls-contract.ts';
import { quotasContract } from './quotas-contract.ts';
import { resultOrderContract } from './result-order-contract.ts';
import { resultsContract } from './results-contract.ts';
import { statsContract } from './stats-contract.ts';
import type { OpenStore } from './store-harness.ts';
import { upkeepContract } from './upkeep-contract.ts';
import { wakingContract } from './waking-contract.ts';

const contracts = [
  modelContract,
  accountsContract,
  crawlersContract,
  probesContract,
  noticesContract,
  pushContract,
  pushControlsContract,
  batchesContract,
  leasesContract,
  claimsContract,
  endsContract,
  purgeContract,
  hostsContract,
  wakingContract,
  deliveriesContract,
  resultsContract,
  listingsContract,
  processesContract,
  cookieSessionsContract,
  proxyPoolsContract,
  resultOrderContract,
  statsContract,
  quotasContract,
  upkeepContract,
  attentionContract,
  auditContract,
  balanceContract,
];

/**
 * Everything that `store.ts` promises, checked on one implementation. Each test opens a fresh,
 * empty store.
 */
export function storeContract(name: string, open: OpenStore): void {
  describe(`store on ${name}`, () => {
    for (const contract of contracts) contract(open);
  });
}
