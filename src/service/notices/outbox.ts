import type { Account } from '../../domain/account.ts';
import type { Attention } from '../../domain/attention.ts';
import type { Batch } from '../../domain/batch.ts';
import { wallNow } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import {
  accountQueueFullNotice,
  attentionNotice,
  batchNotice,
  crawlerPausedNotice,
  type Notice,
} from '../../mail/notice-texts.ts';
import type { Task } from '../../scheduler/scheduler.ts';
import { type NoticesDeps, sendDueNotices } from './send-notices.ts';

/** Time for the event itself to be written, see {@link Notices.crawlerPaused}. */
const DELAY_MS = 1_000;

/**
 * Messages to the owners of accounts: written to an outbox first, then mailed until they are out,
 * each once. An account gets one mail in five minutes at most, which reports all that has happened
 * since the last one.
 */
export interface Notices {
  /**
   * The monitoring pauses the crawler; `error` is why its probe failed. Written before the pause
   * is, so that a crash between loses nothing; `withdraw` it when the crawler was paused already.
   */
  crawlerPaused(
    account: Account,
    crawler: Crawler,
    error: string,
  ): Promise<{ withdraw(): Promise<void> }>;
  /** Pushes of the account are refused because more than `limit` URLs are queued. */
  accountQueueFull(account: Account, limit: number): Promise<void>;
  /** The crawler needs attention, in an episode that began at `episode`. */
  needsAttention(
    account: Account,
    crawler: Crawler,
    attention: Attention,
    episode: Date,
  ): Promise<void>;
  /** A batch of the crawler is complete. Notices of one batch are one until it is mailed. */
  batchCompleted(account: Account, crawler: Crawler, batch: Batch): Promise<void>;
  /**
   * Mails what is due; the `notice` task. What fails is due again, after growing waits. Returns how
   * many were sent.
   */
  sendDue(task: Pick<Task, 'signal' | 'touch'>): Promise<number>;
}

/** Makes the use case. */
export function createNotices(deps: NoticesDeps): Notices {
  const { store, clock } = deps;

  async function add(noticeId: string, account: Account, notice: Notice): Promise<void> {
    const createdAt = wallNow(clock);
    const dueAt = new Date(clock.now().getTime() + DELAY_MS);
    const { accountId } = account;
    await store.notices.add({ noticeId, accountId, ...notice, createdAt, dueAt, attempts: 0 });
  }

  return {
    async crawlerPaused(account, crawler, error) {
      const at = wallNow(clock);
      const noticeId = `paused-${crawler.crawlerId}-${at.getTime()}`;
      const facts = { account: account.name, crawler: crawler.name, error, at };
      const notice = crawlerPausedNotice({ ...facts, callbackUrl: crawler.callbackUrl });
      await add(noticeId, account, notice);
      return { withdraw: () => store.notices.remove([noticeId]) };
    },

    async accountQueueFull(account, limit) {
      const at = wallNow(clock);
      const notice = accountQueueFullNotice({ account: account.name, limit, at });
      await add(`full-${account.accountId}-${at.getTime()}`, account, notice);
    },

    async needsAttention(account, crawler, attention, episode) {
      const noticeId = `attention-${crawler.crawlerId}-${attention.reason}-${episode.getTime()}`;
      const facts = { account: account.name, crawler: crawler.name, ...attention };
      await add(noticeId, account, attentionNotice(facts));
    },

    async batchCompleted(account, crawler, batch) {
      const facts = { account: account.name, crawler: crawler.name, batch };
      await add(`batch-${batch.batchId}`, account, batchNotice(facts));
    },

    sendDue: (task) => sendDueNotices(deps, task),
  };
}
