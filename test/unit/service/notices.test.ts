import { expect, test } from 'vitest';
import type { Account } from '../../../src/domain/account.ts';
import type { Mailer, MailResult } from '../../../src/mail/mailer.ts';
import type { Notice } from '../../../src/mail/notices.ts';
import { createNotices } from '../../../src/service/notices/notices.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** Notices over an embedded store, to a mail server whose answers tests choose. */
async function startNotices() {
  const opened = await openEmbeddedStore();
  const { store } = opened;
  const useCases = createUseCases(store);
  const { clock } = useCases;
  const logger = createRecordingLogger();
  const mails: (Notice & { readonly to: string })[] = [];
  /** Accounts to which a mail was tried, in order. */
  const tried: string[] = [];
  const server = { answer: 'sent' as MailResult, refusedAccount: '' };
  const mailer: Mailer = {
    async send({ accountId }, { subject, text }) {
      tried.push(accountId);
      const answer = accountId === server.refusedAccount ? 'failed' : server.answer;
      if (answer === 'sent') mails.push({ to: accountId, subject, text });
      return answer;
    },
  };
  const notices = createNotices({ store, mailer, clock, logger });
  const touch = async () => undefined;
  const { signal } = new AbortController();
  return {
    store,
    notices,
    mails,
    tried,
    server,
    logger,
    async account(): Promise<Account> {
      return (await useCases.account()).normal.account;
    },
    pause: (account: Account, name: string, error = 'status 500') =>
      notices.crawlerPaused(account, webhookCrawler({ name, crawlerId: name }), error),
    /** Lets time pass and sends what is due then. */
    async sendAfter(ms: number): Promise<number> {
      clock.advance(ms);
      return notices.sendDue({ signal, touch });
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

test('a notice is mailed once, after its event had time to be written', async () => {
  await using app = await startNotices();
  const account = await app.account();
  await app.pause(account, 'prices', 'status 503');
  expect(await app.sendAfter(0)).toBe(0);
  expect(await app.sendAfter(SECOND)).toBe(1);
  expect(await app.sendAfter(DAY)).toBe(0);
  expect(app.mails).toHaveLength(1);
  expect(app.mails[0]?.to).toBe(account.accountId);
  expect(app.mails[0]?.subject).toContain('prices');
  expect(app.mails[0]?.text).toContain('status 503');
});

test('a notice that is withdrawn is not mailed', async () => {
  await using app = await startNotices();
  const { withdraw } = await app.pause(await app.account(), 'prices');
  await withdraw();
  expect(await app.sendAfter(DAY)).toBe(0);
  expect(app.mails).toEqual([]);
});

test('an account gets one mail in five minutes, which lists all that happened in that time', async () => {
  await using app = await startNotices();
  const [account, other] = [await app.account(), await app.account()];
  await app.pause(account, 'first');
  expect(await app.sendAfter(SECOND)).toBe(1);
  await app.pause(account, 'second');
  await app.notices.accountQueueFull(account, 1_000);
  await app.pause(other, 'elsewhere');
  // Its own mail waits, another account's does not.
  expect(await app.sendAfter(SECOND)).toBe(1);
  expect(app.mails.map(({ to }) => to)).toEqual([account.accountId, other.accountId]);
  expect(await app.sendAfter(5 * MINUTE)).toBe(2);
  const digest = app.mails[2];
  expect(digest?.subject).toMatch(/^2 notices/);
  expect(digest?.text).toContain('Crawler second is paused');
  expect(digest?.text).toContain('more than 1,000 URLs');
});

test('while the mail server is down nothing more is tried, and waits grow', async () => {
  await using app = await startNotices();
  app.server.answer = 'unreachable';
  await app.pause(await app.account(), 'one');
  await app.pause(await app.account(), 'two');
  expect(await app.sendAfter(SECOND)).toBe(0);
  expect(app.tried).toHaveLength(1);
  app.server.answer = 'sent';
  expect(await app.sendAfter(29 * SECOND)).toBe(0);
  app.server.answer = 'unreachable';
  expect(await app.sendAfter(SECOND)).toBe(0);
  app.server.answer = 'sent';
  expect(await app.sendAfter(59 * SECOND)).toBe(0);
  expect(await app.sendAfter(SECOND)).toBe(2);
});

test('a mail that is refused holds up nobody else', async () => {
  await using app = await startNotices();
  const [refused, other] = [await app.account(), await app.account()];
  app.server.refusedAccount = refused.accountId;
  await app.pause(refused, 'one');
  await app.pause(other, 'two');
  expect(await app.sendAfter(SECOND)).toBe(1);
  expect(app.tried.toSorted()).toEqual([refused.accountId, other.accountId].toSorted());
  app.server.refusedAccount = '';
  expect(await app.sendAfter(30 * SECOND)).toBe(1);
});

test('a notice that cannot be sent for a week is given up, and the log says so', async () => {
  await using app = await startNotices();
  const account = await app.account();
  app.server.answer = 'failed';
  await app.pause(account, 'prices');
  await app.sendAfter(SECOND);
  expect(app.logger.lines).toEqual([]);
  await app.sendAfter(7 * DAY);
  const { accountId } = account;
  expect(app.logger.lines).toMatchObject([{ level: 'error', fields: { accountId } }]);
  app.server.answer = 'sent';
  expect(await app.sendAfter(DAY)).toBe(0);
});

test('a notice that nobody can receive leaves the outbox', async () => {
  await using app = await startNotices();
  const [gone, unwilling] = [await app.account(), await app.account()];
  await app.pause(gone, 'one');
  await app.pause(unwilling, 'two');
  await app.store.accounts.remove(gone.accountId, new Date());
  app.server.answer = 'unwanted';
  expect(await app.sendAfter(SECOND)).toBe(0);
  expect(app.tried).toEqual([unwilling.accountId]);
  expect(await app.store.notices.claim(new Date(Date.now() + 9 * DAY), 1, 9)).toEqual([]);
});
