import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../domain/durations.ts';
import type { Logger } from '../../domain/logger.ts';
import type { QueuedNotice } from '../../domain/notice.ts';
import { toDigest } from '../../mail/digest.ts';
import type { Mailer, MailResult } from '../../mail/mailer.ts';
import type { Task } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';

/** Longer than the mailer tries. */
const LEASE_MS = 120_000;
const FIRST_RETRY_MS = 30_000;
const LONGEST_RETRY_MS = HOUR_MS;
/** How long an unsent notice is retried; after that it is no longer news. */
const KEPT_MS = 7 * DAY_MS;
/** Notices claimed at once, and so the most in one mail. */
const BATCH = 1_000;
/** An account gets one mail in this time; the next mail reports all that happened since. */
const MAIL_EVERY_MS = 5 * MINUTE_MS;
const ONE_MAIL = { capacity: 1, refillMs: MAIL_EVERY_MS };

/** What notices work with. */
export interface NoticesDeps {
  readonly store: Pick<Store, 'notices' | 'accounts' | 'rates'>;
  readonly mailer: Mailer;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}

/** See `Notices.sendDue`. */
export async function sendDueNotices(
  deps: NoticesDeps,
  { signal, touch }: Pick<Task, 'signal' | 'touch'>,
): Promise<number> {
  let sent = 0;
  while (!signal.aborted) {
    const due = await deps.store.notices.claim(deps.clock.now(), LEASE_MS, BATCH);
    const byAccount = [...Map.groupBy(due, (notice) => notice.accountId)];
    for (const [index, [accountId, notices]] of byAccount.entries()) {
      // The notices that were claimed but not sent are due again when their lease ends.
      if (signal.aborted) return sent;
      await touch();
      const result = await sendToAccount(deps, accountId, notices);
      if (result === 'sent') sent += notices.length;
      if (result === 'unreachable') {
        await postpone(
          deps,
          byAccount.slice(index + 1).flatMap(([, others]) => others),
        );
        return sent;
      }
    }
    if (due.length < BATCH) break;
  }
  return sent;
}

/**
 * Sends the due notices of one account as one mail, unless it had a mail a moment ago: then they
 * wait and are joined with later ones.
 */
async function sendToAccount(
  deps: NoticesDeps,
  accountId: string,
  notices: readonly QueuedNotice[],
): Promise<MailResult | 'held'> {
  const { store, mailer, clock } = deps;
  const noticeIds = notices.map((notice) => notice.noticeId);
  const account = await store.accounts.get(accountId);
  if (account === undefined) {
    await store.notices.remove(noticeIds);
    return 'unwanted';
  }
  const takeMails = (count: number) =>
    store.rates.takeWhole(`mail:${accountId}`, count, ONE_MAIL, clock.now());
  const allowance = await takeMails(0);
  if (allowance.left < 1) {
    // All held notices are due at the same moment, so that one mail reports them.
    const dueAt = new Date(clock.now().getTime() + allowance.retryAfterMs);
    await store.notices.postpone(noticeIds, dueAt);
    return 'held';
  }
  const result = await mailer.send(account, toDigest(account.name, notices));
  if (result === 'sent') await takeMails(1);
  if (result === 'sent' || result === 'unwanted') await store.notices.remove(noticeIds);
  else await postponeOrGiveUp(deps, notices);
  return result;
}

/** Postpones notices after a failure, and gives up those that are too old. */
async function postponeOrGiveUp(
  deps: NoticesDeps,
  notices: readonly QueuedNotice[],
): Promise<void> {
  const { store, clock, logger } = deps;
  const isOld = ({ createdAt }: QueuedNotice): boolean =>
    wallNow(clock).getTime() - createdAt.getTime() > KEPT_MS;
  const old = notices.filter(isOld);
  for (const { accountId, subject } of old) {
    logger.error({ accountId, subject }, 'a notice is given up');
  }
  await store.notices.remove(old.map((notice) => notice.noticeId));
  await postpone(
    deps,
    notices.filter((notice) => !isOld(notice)),
  );
}

/** Postpones notices together, for longer with each attempt. */
async function postpone(
  { store, clock }: NoticesDeps,
  notices: readonly QueuedNotice[],
): Promise<void> {
  const [first] = notices;
  if (first === undefined) return;
  const growing = FIRST_RETRY_MS * 2 ** Math.min(first.attempts - 1, 20);
  const dueAt = new Date(clock.now().getTime() + Math.min(growing, LONGEST_RETRY_MS));
  await store.notices.postpone(
    notices.map((notice) => notice.noticeId),
    dueAt,
  );
}
