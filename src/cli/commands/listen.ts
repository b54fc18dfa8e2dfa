import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Command } from 'commander';
import { PausedBy } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { CliError, usageError } from '../cli-error.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { bodyJson } from '../page-file.ts';
import { type ReceivedDelivery, readDelivery, resultsOf } from '../received-delivery.ts';

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly secret?: string;
  readonly crawler?: string;
  readonly status: number;
  readonly count?: number;
}

/** 24 bytes in base64, the least of Standard Webhooks, or more. */
const SECRET = /^(?:whsec_)?[A-Za-z\d+/]{32,}={0,2}$/;

/** `listen`: a webhook receiver for development. */
export function createListenCommand(context: CommandContext): Command {
  return new Command('listen')
    .description(
      'Receive deliveries on this machine, verify their signatures and print them. The service has to be allowed to reach it: NETWORK_ALLOW=127.0.0.1.',
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option(
      '--port <port>',
      'port to listen on; 0 picks a free one',
      wholeNumber('--port', 0, 65_535),
      0,
    )
    .option(
      '--secret <secret>',
      "the crawler's signing secret, whsec_... (QUEUED_CRAWLER_WEBHOOK_SECRET)",
    )
    .option(
      '--crawler <name>',
      'make this crawler, or change it, so that it delivers here, with a new secret',
    )
    .option(
      '--status <status>',
      'answer deliveries with this status',
      wholeNumber('--status', 200, 599),
      204,
    )
    .option('--count <n>', 'end after this many deliveries', wholeNumber('--count', 1, 1_000_000))
    .addHelpText(
      'after',
      examples(
        'queued-crawler listen --crawler hook',
        'queued-crawler --json listen --port 3000 --secret "$WEBHOOK_SECRET" | jq .rid',
      ),
    )
    .action(async (options: ListenOptions, command: Command) => {
      using session = await openSession(context, command);
      const given = options.secret ?? context.env.QUEUED_CRAWLER_WEBHOOK_SECRET;
      if (given !== undefined && options.crawler !== undefined) {
        throw usageError('--crawler makes a secret of its own; leave --secret out');
      }
      // By an empty one, as of a variable that is not set, anybody could sign.
      if (given !== undefined && !SECRET.test(given)) {
        throw usageError('--secret must be the signing secret of a crawler, whsec_...');
      }
      await listen(session, options, given);
    });
}

async function listen(
  session: Session,
  options: ListenOptions,
  given: string | undefined,
): Promise<void> {
  const { output, signal } = session;
  const ended = Promise.withResolvers<void>();
  let secret = given;
  let left = options.count ?? Number.POSITIVE_INFINITY;
  // Printed one after the other, whatever comes at once.
  let printing = Promise.resolve();

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      response.writeHead(405, { allow: 'POST' }).end();
      return;
    }
    const delivery = await readDelivery(request, secret);
    response.writeHead(delivery.signature === 'invalid' ? 401 : options.status).end();
    const results = resultsOf(delivery);
    printing = printing.then(async () => {
      for (const each of results) await print(session, each);
    });
    if (delivery.isProbe || delivery.signature === 'invalid') return;
    left -= results.length;
    if (left <= 0) ended.resolve();
  }

  const server = createServer((request, response) => {
    receive(request, response).catch((error: unknown) => {
      output.note(`a delivery could not be read: ${(error as Error).message}`);
      response.destroy();
    });
  });
  server.listen(options.port, options.host);
  await once(server, 'listening').catch((error: unknown) => {
    throw new CliError(`cannot listen: ${(error as Error).message}`, EXIT_CODE.usage);
  });
  try {
    const { port } = server.address() as AddressInfo;
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    const url = `http://${host}:${port}/`;
    if (options.crawler !== undefined) {
      secret = await pointAt(session, options.crawler, url);
      await goOn(session, options.crawler);
    }
    output.note(
      `listening at ${url}${secret === undefined ? ', signatures are not verified' : ''}`,
    );
    const onAbort = () => ended.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    await ended.promise;
    await printing;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** Makes a crawler deliver to `callbackUrl`, and returns its new signing secret. */
async function pointAt({ client }: Session, name: string, callbackUrl: string): Promise<string> {
  const isThere = await client.crawlers.getCrawler({ name }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && error.message.startsWith('[not_found]')) return false;
      throw error;
    },
  );
  if (!isThere) {
    const { crawler } = await client.crawlers.createCrawler({ name, callbackUrl });
    if (crawler?.webhookSecret !== undefined) return crawler.webhookSecret;
  }
  await client.crawlers.updateCrawler({ name, callbackUrl });
  return (await client.crawlers.rotateWebhookSecret({ name })).webhookSecret;
}

/** Unpauses a crawler whose former callback URL failed: the probe that would do so may be a minute away. */
async function goOn({ client, output }: Session, name: string): Promise<void> {
  const { crawler } = await client.crawlers.getCrawler({ name });
  if (crawler?.pausedBy !== PausedBy.MONITOR) return;
  await client.crawlers.unpauseCrawler({ name });
  output.note(`crawler ${name} was paused, as its former callback URL failed; it continues`);
}

async function print({ output }: Session, delivery: ReceivedDelivery): Promise<void> {
  const { signature, isProbe, headers, body } = delivery;
  const {
    rid = '',
    cb_status: cbStatus = '',
    original_status: originalStatus = '',
    url = '',
  } = headers;
  if (output.isJson) {
    const kind = isProbe ? 'probe' : 'delivery';
    await output.json({ kind, signature, rid, headers, ...bodyJson(body) });
    return;
  }
  const style = signature === 'valid' ? 'green' : signature === 'invalid' ? 'red' : 'yellow';
  const mark = output.paint(style, signature);
  const time = new Date().toISOString().slice(11, 19);
  await output.line(
    isProbe
      ? `${time}  probe  ${mark}`
      : `${time}  ${printable(rid)}  ${mark}  ${printable(cbStatus)} ${printable(originalStatus)}  ${body.byteLength} bytes  ${printable(url)}`,
  );
}
