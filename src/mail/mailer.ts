import { createTransport } from 'nodemailer';
import type { Account } from '../domain/account.ts';
import { type Clock, systemClock } from '../domain/clock.ts';
import type { Crawler } from '../domain/crawler.ts';
import type { Logger } from '../domain/logger.ts';
import { accountQueueFullNotice, crawlerPausedNotice, type Notice } from './notices.ts';

// Far below nodemailer's own, which are up to ten minutes: a notice is not worth a shutdown that waits so long.
const TIMEOUTS = {
  connectionTimeout: 10_000,
  dnsTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
};

/** Notices to the owners of accounts. No method throws: what cannot be sent is logged. */
export interface Mailer {
  /** The monitoring paused the crawler; `error` is what the probe came to. */
  crawlerPaused(account: Account, crawler: Crawler, error: string): Promise<void>;
  /** Pushes of the account are refused because more than `limit` URLs are queued. */
  accountQueueFull(account: Account, limit: number): Promise<void>;
}

/** What the mailer works with. */
export interface MailerDeps {
  /** `smtp://` or `smtps://` with credentials and port as needed; empty for none: each notice is then logged as a warning. */
  readonly smtpUrl: string;
  /** Sender. */
  readonly from: string;
  readonly logger: Logger;
  /** For the time named in a notice; default the machine's. */
  readonly clock?: Clock;
}

/** Makes the mailer; connections last for one mail each, so nothing has to be closed. */
export function createMailer(deps: MailerDeps): Mailer {
  const { smtpUrl, from, logger, clock = systemClock } = deps;
  const transport =
    smtpUrl === '' ? undefined : createTransport({ url: smtpUrl, ...TIMEOUTS }, { from });

  async function send(account: Account, { subject, text }: Notice): Promise<void> {
    const fields = { account: account.name, subject };
    if (account.email === '') {
      logger.warn(fields, 'a notice was not mailed: the account has no e-mail address');
    } else if (transport === undefined) {
      logger.warn(fields, 'a notice was not mailed: set SMTP_URL to send mail');
    } else {
      try {
        // As an object the address is taken as it is, never read as a list of several.
        await transport.sendMail({ to: { name: '', address: account.email }, subject, text });
        logger.info(fields, 'a notice was mailed');
      } catch (error) {
        logger.error({ ...fields, err: error }, 'a notice could not be mailed');
      }
    }
  }

  return {
    crawlerPaused: (account, crawler, error) =>
      send(
        account,
        crawlerPausedNotice({
          account: account.name,
          crawler: crawler.name,
          callbackUrl: crawler.callbackUrl,
          error,
          at: clock.now(),
        }),
      ),
    accountQueueFull: (account, limit) =>
      send(account, accountQueueFullNotice({ account: account.name, limit, at: clock.now() })),
  };
}
