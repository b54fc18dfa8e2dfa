import { describe } from 'vitest';
import { accountsContract } from './accounts-contract.ts';
import { balanceContract } from './balance-contract.ts';
import { claimsContract } from './claims-contract.ts';
import { crawlersContract } from './crawlers-contract.ts';
import { deliveriesContract } from './deliveries-contract.ts';
import { endsContract } from './ends-contract.ts';
import { leasesContract } from './leases-contract.ts';
import { probesContract } from './probes-contract.ts';
import { pushContract } from './push-contract.ts';
import { resultsContract } from './results-contract.ts';
import { statsContract } from './stats-contract.ts';
import type { OpenStore } from './store-harness.ts';
import { upkeepContract } from './upkeep-contract.ts';
import { wakingContract } from './waking-contract.ts';

const contracts = [
  accountsContract,
  crawlersContract,
  probesContract,
  pushContract,
  leasesContract,
  claimsContract,
  endsContract,
  wakingContract,
  deliveriesContract,
  resultsContract,
  statsContract,
  upkeepContract,
  balanceContract,
];

/**
 * What `store.ts` promises, for any implementation. Each test opens a fresh, empty store. Moments are in 2040, so that a
 * database that expires records by its own clock does not interfere.
 */
export function storeContract(name: string, open: OpenStore): void {
  describe(`the store on ${name}`, () => {
    for (const contract of contracts) contract(open);
  });
}
