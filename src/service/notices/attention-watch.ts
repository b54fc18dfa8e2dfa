import { type Attention, type AttentionReason, attentionReasons } from '../../domain/attention.ts';
import type { Clock } from '../../domain/clock.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { MINUTE_MS } from '../../domain/durations.ts';
import type { CrawlerOverview, Store } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import { MAX_CRAWLERS, type ReadAttention } from '../reads/overviews.ts';
import type { Notices } from './outbox.ts';

/** Looks at the crawlers of all accounts that need attention. */
export interface AttentionWatch {
  /** How many crawlers need attention, by reason. */
  counts(): Promise<Readonly<Record<AttentionReason, number>>>;
  /** Notes which trouble lasts, and tells the owners who want that; for one caller at a time. */
  tell(): Promise<void>;
}

/** The read looks at the counters of all crawlers; a process that tells makes one in this time. */
const TELL_EVERY_MS = 10_000;

/** Makes the watch. */
export function createAttentionWatch(deps: {
  readonly store: Pick<Store, 'listings' | 'notices' | 'accounts'>;
  readonly notices: Pick<Notices, 'needsAttention'>;
  readonly attention: ReadAttention;
  readonly quotas: Pick<Quotas, 'allHolds'>;
  readonly queueLimit: number;
  readonly clock: Clock;
}): AttentionWatch {
  const { store, clock } = deps;
  let toldAtMs = Number.NEGATIVE_INFINITY;

  async function read(): Promise<(CrawlerOverview & { readonly attention: Attention })[]> {
    const { everywhere, byAccount } = await deps.quotas.allHolds();
    const heldAccounts = everywhere.length > 0 ? 'all' : [...byAccount.keys()];
    const limits = { queueLimit: deps.queueLimit, heldAccounts } as const;
    const found = await store.listings.troubled(limits, MAX_CRAWLERS);
    return found
      .filter(({ crawler }) => !isInternal(crawler))
      .flatMap((each) => {
        const holds = [...everywhere, ...(byAccount.get(each.crawler.accountId) ?? [])];
        return deps.attention(each, holds).map((attention) => ({ ...each, attention }));
      });
  }

  return {
    async counts() {
      const counts = Object.fromEntries(
        Object.keys(attentionReasons).map((reason) => [reason, 0]),
      ) as Record<AttentionReason, number>;
      for (const { attention } of await read()) counts[attention.reason] += 1;
      return counts;
    },

    async tell() {
      const now = clock.now();
      if (now.getTime() - toldAtMs < TELL_EVERY_MS) return;
      toldAtMs = now.getTime();
      const wanted = (await read()).filter(
        // The monitor tells of its pauses itself.
        ({ crawler, attention }) =>
          crawler.notifyAfterMinutes > 0 && attention.reason !== 'paused_by_monitor',
      );
      const byKey = new Map(
        wanted.map((each) => [`${each.crawler.crawlerId} ${each.attention.reason}`, each]),
      );
      const episodes = await store.notices.lasting([...byKey.keys()], now);
      for (const { key, since, told } of episodes) {
        const trouble = byKey.get(key);
        if (trouble === undefined || told) continue;
        const { crawler, attention } = trouble;
        const lastsMs = now.getTime() - since.getTime();
        if (lastsMs < crawler.notifyAfterMinutes * MINUTE_MS) continue;
        const account = await store.accounts.get(crawler.accountId);
        if (account === undefined) continue;
        // Its name is that of the episode, so a crash between these writes causes no second one
        // while the first waits.
        await deps.notices.needsAttention(account, crawler, attention, since);
        await store.notices.told([key]);
      }
    },
  };
}
