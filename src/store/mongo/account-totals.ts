import { setTimeout as delay } from 'node:timers/promises';
import { INTERNAL_PREFIX } from '../../domain/crawler-name.ts';
import { WRITTEN_MS } from './account-increments.ts';
import type { AccountDocument, Collections } from './collections.ts';
import { sumParts } from './counts-document.ts';

type Totals = Pick<AccountDocument, 'queued' | 'crawlers' | 'concurrency' | 'queuedBytes'>;

/**
 * Corrects the totals of accounts. Totals may lag behind the crawlers for a moment, so only a
 * difference that is the same at two looks is taken for the trace of a crash.
 */
export async function repairAccounts(collections: Collections): Promise<void> {
  const first = await wrongTotals(collections);
  if (first.size === 0) return;
  await delay(WRITTEN_MS);
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
  const [owned, held] = await Promise.all([
    collections.crawlers
      .aggregate<Pick<Totals, 'crawlers' | 'concurrency'> & { _id: string }>([
        {
          $group: {
            _id: '$accountId',
            crawlers: { $sum: { $cond: [own, 0, 1] } },
            concurrency: { $sum: { $cond: [own, 0, '$concurrency'] } },
          },
        },
      ])
      .toArray(),
    sumParts(collections, 'accountId', ['waiting', 'retrying', 'queuedBytes', 'runningBytes']),
  ]);
  const crawlers = new Map(owned.map((each) => [each._id, each]));
  const jobs = new Map(held.map((each) => [each._id, each]));
  const accounts = await collections.accounts
    .find({}, { projection: { queued: 1, crawlers: 1, concurrency: 1, queuedBytes: 1 } })
    .toArray();
  const wrong = accounts.map((account): [string, Totals] => {
    const { crawlers: n = 0, concurrency: slots = 0 } = crawlers.get(account._id) ?? {};
    const job = jobs.get(account._id);
    const crawlersOff = n - account.crawlers;
    const concurrency = slots - account.concurrency;
    const queued = (job?.waiting ?? 0) + (job?.retrying ?? 0) - account.queued;
    const bytes = (job?.queuedBytes ?? 0) + (job?.runningBytes ?? 0);
    const queuedBytes = bytes - account.queuedBytes;
    return [account._id, { queued, crawlers: crawlersOff, concurrency, queuedBytes }];
  });
  return new Map(wrong.filter(([, off]) => Object.values(off).some((by) => by !== 0)));
}
