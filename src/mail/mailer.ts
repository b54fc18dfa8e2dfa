import type { Account } from '../domain/account.ts';
import type { Logger } from '../domain/logger.ts';
import type { Notice } from './notice-texts.ts';

// Far below nodemailer's own, which are up to ten minutes: a notice is not worth a shutdown that
// waits that long.
const TIMEOUTS = {
  connectionTimeout: 10_000,
  dnsTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 20_000,
};

/**
 * The result of sending a mail. `failed` and `unreachable` are worth another try, and `unreachable`
 * means that no mail gets through now. With `unwanted` no try can help: there is no address, or mail
 * is not set up.
 */
export type MailResult = 'sent' | 'failed' | 'unreachable' | 'unwanted';

/** Sends mail to the owners of accounts. */
export interface Mailer {
  /** Sends one mail. Never throws: a mail that is not sent is logged. */
  send(account: Account, notice: Notice): Promise<MailResult>;
}

/** What the mailer works with. */
export interface MailerDeps {
  /**
   * `smtp://` or `smtps://` with credentials and port as needed; empty for none: each notice is
   * then logged as a warning.
   */
  readonly smtpUrl: string;
  /** Sender. */
  readonly from: string;
  readonly logger: Logger;
}

/** Makes the mailer; connections last for one mail each, so nothing has to be closed. */
export function createMailer(deps: MailerDeps): Mailer {
  const { smtpUrl, from, logger } = deps;
  /** Loaded by the first mail: most services send none. */
  async function makeTransport() {
    const { createTransport } = await import('nodemailer');
    return createTransport({ url: smtpUrl, ...TIMEOUTS }, { from });
  }
  let transport: ReturnType<typeof makeTransport> | undefined;

  return {
    async send(account, { subject, text }) {
      const fields = { account: account.name, subject };
      if (account.email === '') {
        logger.warn(fields, 'a notice was not mailed: the account has no e-mail address');
        return 'unwanted';
      }
      if (smtpUrl === '') {
        logger.warn(fields, 'a notice was not mailed: set SMTP_URL to send mail');
        return 'unwanted';
      }
      try {
        transport ??= makeTransport();
        // As an object the address is taken as it is, never read as a list of several.
        await (await transport).sendMail({
          to: { name: '', address: account.email },
          subject,
          text,
        });
        logger.info(fields, 'a notice was mailed');
        return 'sent';
      } catch (error) {
        logger.error({ ...fields, err: error }, 'a notice could not be mailed');
        return aboutThisMail(error) ? 'failed' : 'unreachable';
      }
    },
  };
}

/**
 * Whether the mail server refused this mail, as opposed to not being there or not letting anybody
 * in.
 */
function aboutThisMail(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && /^(EENVELOPE|EMESSAGE)$/.test(String(error.code))
  );
}
