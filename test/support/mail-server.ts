import { SMTPServer } from 'smtp-server';
import { listen } from './listen.ts';

/** A mail server on a free port of 127.0.0.1 that keeps what it is sent. */
export interface MailServer extends AsyncDisposable {
  /** For `SMTP_URL`. */
  readonly url: string;
  /** Whole messages with their headers, oldest first. */
  readonly mails: readonly string[];
}

/** Starts one; `port` takes up a given one, as after a restart. */
export async function startMailServer(port = 0): Promise<MailServer> {
  const mails: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        mails.push(Buffer.concat(chunks).toString());
        done();
      });
    },
  });
  const { port: own } = await listen(server.server, port);
  return {
    url: `smtp://127.0.0.1:${own}`,
    mails,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
