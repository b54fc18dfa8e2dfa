import { SMTPServer } from 'smtp-server';
import { describe, expect, test } from 'vitest';
import type { Account } from '../../../src/domain/account.ts';
import { createMailer } from '../../../src/mail/mailer.ts';
import { accountQueueFullNotice, crawlerPausedNotice } from '../../../src/mail/notice-texts.ts';
import { freePort, listen } from '../../support/listen.ts';
import { createRecordingLogger } from '../../support/loggers.ts';

interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string;
  /** With soft line breaks undone. */
  readonly source: string;
}

async function startMailServer(options: { readonly refuse?: string } = {}) {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onAuth: (auth, _session, done) => done(null, { user: auth.username }),
    onRcptTo: (_address, _session, done) =>
      done(options.refuse === undefined ? null : new Error(options.refuse)),
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: String(session.user ?? ''),
          source: Buffer.concat(chunks).toString().replaceAll('=\r\n', '').replaceAll('\r\n', '\n'),
        });
        done();
      });
    },
  });
  const { port } = await listen(server.server);
  return {
    mails,
    host: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
      }),
  };
}

const account: Account = {
  accountId: '0'.repeat(24),
  name: 'shop',
  email: 'owner@example.com',
  tokenHashes: { normal: '', javascript: '' },
  limits: {},
  createdAt: new Date(),
};
const at = new Date('2026-03-04T05:06:07.890Z');
const paused = crawlerPausedNotice({
  account: account.name,
  crawler: 'prices',
  callbackUrl: 'https://user:secret1@hooks.example.com/in?token=secret2',
  error: 'status 500',
  at,
});
const fullOf = (limit: number) => accountQueueFullNotice({ account: account.name, limit, at });
const from = 'queue@example.net';

describe('over SMTP', () => {
  test('a paused crawler: what happened, why, when, and what to do, without secrets', async () => {
    await using server = await startMailServer();
    const logger = createRecordingLogger();
    const smtpUrl = `smtp://mailer:p%40ss@${server.host}`;
    await createMailer({ smtpUrl, from, logger }).send(account, paused);

    const [mail] = server.mails;
    expect(mail).toMatchObject({ from, to: ['owner@example.com'], user: 'mailer' });
    expect(mail?.source).toContain(`From: ${from}`);
    expect(mail?.source).toMatch(/Subject: Crawler prices is paused/);
    expect(mail?.source).toMatch(/Content-Type: text\/plain/);
    for (const part of [
      'account shop',
      'https://hooks.example.com/in\n',
      'status 500',
      '2026-03-04 05:06:07 UTC',
      'What to do',
    ]) {
      expect(mail?.source).toContain(part);
    }
    expect(mail?.source).not.toMatch(/secret/);
    expect(logger.lines.map(({ level }) => level)).toEqual(['info']);
  });

  test('a full queue names the limit', async () => {
    await using server = await startMailServer();
    const logger = createRecordingLogger();
    const mailer = createMailer({ smtpUrl: `smtp://${server.host}`, from, logger });
    await mailer.send(account, fullOf(1_000_000));
    const [mail] = server.mails;
    expect(mail?.source).toContain('hold more than 1,000,000 waiting URLs');
    expect(mail?.source).toContain('2026-03-04 05:06:07 UTC');
  });

  test('an address that reads like a list is one address', async () => {
    await using server = await startMailServer();
    const logger = createRecordingLogger();
    const mailer = createMailer({ smtpUrl: `smtp://${server.host}`, from, logger });
    await mailer.send({ ...account, email: 'a@example.com,b@example.com' }, fullOf(10));
    expect(server.mails.flatMap(({ to }) => to)).not.toContain('b@example.com');
  });

  test('a refused recipient is logged, not thrown', async () => {
    await using server = await startMailServer({ refuse: 'no such user' });
    const logger = createRecordingLogger();
    const mailer = createMailer({ smtpUrl: `smtp://${server.host}`, from, logger });
    await mailer.send(account, paused);
    expect(server.mails).toEqual([]);
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { account: 'shop' } }]);
  });

  test('a server that is not there is logged, not thrown', async () => {
    const logger = createRecordingLogger();
    const smtpUrl = `smtp://user:hunter2@127.0.0.1:${await freePort()}`;
    await createMailer({ smtpUrl, from, logger }).send(account, paused);
    expect(logger.lines.map(({ level }) => level)).toEqual(['error']);
    expect(JSON.stringify(logger.lines)).not.toContain('hunter2');
  });
});

describe('not sent', () => {
  test('without SMTP_URL every notice is a warning that names it', async () => {
    const logger = createRecordingLogger();
    const mailer = createMailer({ smtpUrl: '', from, logger });
    await mailer.send(account, paused);
    await mailer.send(account, fullOf(10));
    expect(logger.lines).toHaveLength(2);
    for (const { level, message } of logger.lines) {
      expect(level).toBe('warn');
      expect(message).toContain('SMTP_URL');
    }
    expect(logger.lines[0]?.fields).toMatchObject({
      account: 'shop',
      subject: expect.stringContaining('prices'),
    });
  });

  test('an account without an address is logged', async () => {
    await using server = await startMailServer();
    const logger = createRecordingLogger();
    const mailer = createMailer({ smtpUrl: `smtp://${server.host}`, from, logger });
    await mailer.send({ ...account, email: '' }, paused);
    expect(server.mails).toEqual([]);
    expect(logger.lines).toMatchObject([{ level: 'warn', fields: { account: 'shop' } }]);
  });
});
