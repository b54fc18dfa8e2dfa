import type { Account } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { DAY_MS } from '../../domain/durations.ts';
import type { Logger } from '../../domain/logger.ts';
import type { QueuedNotice } from '../../domain/notice.ts';
import { toDigest } from '../../mail/digest.ts';
import type { Mailer } from '../../mail/mailer.ts';
import { accountQueueFullNotice, crawlerPausedNotice, type Notice } from '../../mail/notices.ts';
import type { Task } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';

/** Time for the event itself to be written, see {@link Notices.crawlerPaused}. */
const DELAY_MS = 1_000;
/** Longer than the mailer tries. */
const LEASE_MS = 120_000;
const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 60 * 60 * 1_000;
/** A notice that could not be sent for so long is given up: it is no longer news. */
const KEPT_MS = 7 * DAY_MS;
/** Notices taken at once, and so the most in one mail. */
const BATCH = 1_000;
/** An account gets one mail in this time; the next mail reports all that happened meanwhile. */
const MAIL_EVERY_MS = 5 * 60 * 1_000;
const ONE_MAIL = { capacity: 1, refillMs: MAIL_EVERY_MS };

/** What notices work with. */
export interface NoticesDeps {
  readonly store: Pick<Store, 'notices' | 'accounts' | 'rates'>;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly logger: Logger;
}

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
  /**
   * Mails what is due; the `notice` task. What fails is due again, after growing waits. Returns how
   * many were sent.
   */
  sendDue(task: Pick<Task, 'signal' | 'touch'>): Promise<number>;
}

/** Makes the use case. */
export function createNotices(deps: NoticesDeps): Notices {
  const { store, mailer, clock, logger } = deps;

  async function add(noticeId: string, account: Account, notice: Notice): Promise<void> {
    const createdAt = clock.now();
    const dueAt = new Date(createdAt.getTime() + DELAY_MS);
    const { accountId } = account;
    await store.notices.add({ noticeId, accountId, ...notice, createdAt, dueAt, attempts: 0 });
  }

  /**
   * Sends what is due to one account as one mail, unless it has had one a moment ago: then it waits
   * for what comes meanwhile.
   */
  async function send(
    accountId: string,
    notices: readonly QueuedNotice[],
  ): Promise<Awaited<ReturnType<Mailer['send']>> | 'held'> {
    const ids = notices.map((notice) => notice.noticeId);
    const account = await store.accounts.get(accountId);
    if (account === undefined) {
      await store.notices.remove(ids);
      return 'unwanted';
    }
    const mails = (count: number) =>
      store.rates.takeWhole(`mail:${accountId}`, count, ONE_MAIL, clock.now());
    const allowance = await mails(0);
    if (allowance.left < 1) {
      // All held notices are due at the same moment, so that one mail reports them.
      const dueAt = new Date(clock.now().getTime() + allowance.retryAfterMs);
      await store.notices.postpone(ids, dueAt);
      return 'held';
    }
    const end = await mailer.send(account, toDigest(account.name, notices));
    if (end === 'sent') await mails(1);
    if (end === 'sent' || end === 'unwanted') await store.notices.remove(ids);
    else await tryAgain(notices);
    return end;
  }

  /** Postpones notices after a failure, and gives up those that are too old. */
  async function tryAgain(notices: readonly QueuedNotice[]): Promise<void> {
    const isOld = ({ createdAt }: QueuedNotice): boolean =>
      clock.now().getTime() - createdAt.getTime() > KEPT_MS;
    const old = notices.filter(isOld);
    for (const { accountId, subject } of old) {
      logger.error({ accountId, subject }, 'a notice is given up');
    }
    await store.notices.remove(old.map((notice) => notice.noticeId));
    await postpone(notices.filter((notice) => !isOld(notice)));
  }

  async function postpone(notices: readonly QueuedNotice[]): Promise<void> {
    const [first] = notices;
    if (first === undefined) return;
    const growing = FIRST_RETRY_MS * 2 ** Math.min(first.attempts - 1, 20);
    const dueAt = new Date(clock.now().getTime() + Math.min(growing, LONGEST_RETRY_MS));
    await store.notices.postpone(
      notices.map((notice) => notice.noticeId),
      dueAt,
    );
  }

  return {
    async crawlerPaused(account, crawler, error) {
      const at = clock.now();
      const noticeId = `paused-${crawler.crawlerId}-${at.getTime()}`;
      const facts = { account: account.name, crawler: crawler.name, error, at };
      const notice = crawlerPausedNotice({ ...facts, callbackUrl: crawler.callbackUrl });
      await add(noticeId, account, notice);
      return { withdraw: () => store.notices.remove([noticeId]) };
    },

    async accountQueueFull(account, limit) {
      const at = clock.now();
      const notice = accountQueueFullNotice({ account: account.name, limit, at });
      await add(`full-${account.accountId}-${at.getTime()}`, account, notice);
    },

    async sendDue({ signal, touch }) {
      let sent = 0;
      while (!signal.aborted) {
        const due = await store.notices.claim(clock.now(), LEASE_MS, BATCH);
        const byAccount = [...Map.groupBy(due, (notice) => notice.accountId)];
        for (const [index, [accountId, notices]] of byAccount.entries()) {
          // The notices that were claimed but not sent are due again when their lease ends.
          if (signal.aborted) return sent;
          await touch();
          const end = await send(accountId, notices);
          if (end === 'sent') sent += notices.length;
          if (end === 'unreachable') {
            await postpone(byAccount.slice(index + 1).flatMap(([, others]) => others));
            return sent;
          }
        }
        if (due.length < BATCH) break;
      }
      return sent;
    },
  };
}
