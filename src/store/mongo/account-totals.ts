import { setTimeout as delay } from 'node:timers/promises';
import { INTERNAL_PREFIX } from '../../domain/crawler-name.ts';
import type { AccountDocument, Collections } from './collections.ts';

/** Longer than processes gather changes before they write them. */
const SECOND_LOOK_MS = 1_500;

type Totals = Required<
  Pick<AccountDocument, 'queued' | 'crawlers' | 'concurrency' | 'queuedBytes'>
>;

/**
 * Corrects the totals of accounts. Totals may lag behind the crawlers for a moment, so only a
 * difference that is the same at two looks is taken for the trace of a crash.
 */
export async function repairAccounts(collections: Collections): Promise<void> {
  const first = await wrongTotals(collections);
  if (first.size === 0) return;
  await delay(SECOND_LOOK_MS);
  const second = await wrongTotals(collections);
  for (const [accountId, off] of second) {
    const same = Object.entries(off).filter(
      ([name, by]) => by !== 0 && first.get(accountId)?.[name as keyof Totals] === by,
    );
    if (same.length === 0) continue;
    await collections.accounts.updateOne({ _id: accountId }, { $inc: Object.fromEntries(same) });
  }
}

/** The differences between the totals of accounts and the sums over their crawlers. */
async function wrongTotals(collections: Collections): Promise<Map<string, Totals>> {
  const own = { $eq: [{ $substrCP: ['$name', 0, 1] }, INTERNAL_PREFIX] };
  const sums = await collections.crawlers
    .aggregate<Totals & { _id: string; pending: number }>([
      {
        $group: {
          _id: '$accountId',
          queued: {
            $sum: { $add: [{ $subtract: ['$live', '$running'] }, { $sum: '$pending.n' }] },
          },
          crawlers: { $sum: { $cond: [own, 0, 1] } },
          concurrency: { $sum: { $cond: [own, 0, '$concurrency'] } },
          queuedBytes: { $sum: '$liveBytes' },
          pending: { $sum: { $size: '$pending' } },
        },
      },
    ])
    .toArray();
  const totals = new Map(sums.map((each) => [each._id, each]));
  const accounts = await collections.accounts
    .find({}, { projection: { queued: 1, crawlers: 1, concurrency: 1, queuedBytes: 1 } })
    .toArray();
  const wrong = accounts.map((account): [string, Totals] => {
    const sum = totals.get(account._id);
    const off = (name: keyof Totals): number => (sum?.[name] ?? 0) - (account[name] ?? 0);
    // A push in progress has counted its bytes in the account only.
    const queuedBytes = (sum?.pending ?? 0) > 0 ? 0 : off('queuedBytes');
    const [queued, crawlers, concurrency] = [off('queued'), off('crawlers'), off('concurrency')];
    return [account._id, { queued, crawlers, concurrency, queuedBytes }];
  });
  return new Map(wrong.filter(([, off]) => Object.values(off).some((by) => by !== 0)));
}
