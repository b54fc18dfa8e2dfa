import { describe } from 'vitest';
import { modelContract } from './model-contract.ts';
import { ownerContract } from './owners-contract.ts';
import { queueContract } from './queue-contract.ts';
import { deliveryContract, resultContract } from './records-contract.ts';
import type { OpenStore } from './store-fixture.ts';

/** Everything `store.ts` promises, asked of one implementation. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`store on ${name}`, () => {
    ownerContract(open);
    queueContract(open);
    deliveryContract(open);
    resultContract(open);
    modelContract(open);
  });
}
