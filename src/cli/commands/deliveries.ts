import { Command, Option } from 'commander';
import {
  DeliverySchema,
  DeliveryState,
  TestDeliveryResponseSchema,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { defined } from '../../domain/defined.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, openSession, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable, printableValue } from '../output.ts';
import { printPages } from '../print-pages.ts';
import { toTimestamps } from '../timestamp-option.ts';

/** States of deliveries, by their names. */
export const DELIVERY_STATES = {
  pending: DeliveryState.PENDING,
  failed: DeliveryState.FAILED,
  delivered: DeliveryState.DELIVERED,
} as const;

/** `deliveries`: what became of results on their way to a callback URL. */
export function createDeliveriesCommand(context: CommandContext): Command {
  const group = new Command('deliveries').description(
    'List deliveries to a webhook, make them again, and test one.',
  );
  group
    .command('list')
    .description('List the deliveries of a crawler.')
    .argument('<crawler>', 'its name')
    .addOption(new Option('--state <state>', 'only these').choices(Object.keys(DELIVERY_STATES)))
    .option('--limit <n>', 'most deliveries', wholeNumber('--limit', 1, 1_000_000), 100)
    .addHelpText(
      'after',
      examples(
        'queued-crawler deliveries list hook --state failed',
        'queued-crawler --json deliveries list hook | jq -r .rid',
      ),
    )
    .action(
      async (
        name: string,
        { state, limit }: { state?: keyof typeof DELIVERY_STATES; limit: number },
        command: Command,
      ) => {
        using session = await openSession(context, command);
        await printPages(session.output, limit, {
          desc: DeliverySchema,
          async read(pageSize, pageToken) {
            const { deliveries, nextPageToken } = await session.client.activity.listDeliveries({
              name,
              pageSize,
              pageToken,
              ...(state === undefined ? {} : { state: DELIVERY_STATES[state] }),
            });
            return { items: deliveries, nextPageToken };
          },
          heading: ['RID', 'STATE', 'CREATED', 'ATTEMPTS', 'NEXT', 'URL'],
          row: (plain) => [
            plain.rid,
            plain.state,
            plain.created_at,
            (plain.attempts as unknown[]).length,
            plain.next_attempt_at,
            plain.url,
          ],
        });
      },
    );
  group
    .command('test')
    .description("Send a signed test to a crawler's callback URL, now.")
    .argument('<crawler>', 'its name')
    .addHelpText('after', examples('queued-crawler deliveries test hook'))
    .action(async (name: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const reply = await client.crawlers.testDelivery({ name });
      if (!reply.acknowledged) context.setExitCode(EXIT_CODE.failed);
      if (output.isJson) return output.json(toPlain(TestDeliveryResponseSchema, reply));
      const { status = 0, durationMs = 0, error = '' } = reply.attempt ?? {};
      const told = reply.acknowledged ? 'acknowledged' : 'not acknowledged';
      await output.line(`${told}: status ${status} in ${durationMs} ms ${printable(error)}`.trim());
    });
  group
    .command('show')
    .description('Show one delivery with its attempts.')
    .argument('<crawler>', 'its name')
    .argument('<rid>', 'the rid of the result')
    .addHelpText('after', examples('queued-crawler deliveries show hook 6650f1c2a9b3d4e5f6071829'))
    .action(async (crawler: string, rid: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const { delivery } = await client.crawlers.getDelivery({ name: crawler, rid });
      if (delivery === undefined) return;
      const plain = toPlain(DeliverySchema, delivery);
      if (output.isJson) return output.json(plain);
      const next =
        plain.next_attempt_at === undefined ? '' : `, next ${plainText(plain.next_attempt_at)}`;
      await output.line(`${plainText(plain.state)}${next}: ${printable(delivery.url)}`);
      const attempts = plain.attempts as Record<string, unknown>[];
      await output.table(
        ['ATTEMPT', 'STARTED', 'STATUS', 'MS', 'ERROR'],
        attempts.map(({ attempt, started_at, status, duration_ms, error }) =>
          [attempt, started_at, status, duration_ms, error].map(printableValue),
        ),
      );
    });
  group
    .command('replay')
    .description('Deliver results again: one, or those whose crawl ended in a time.')
    .argument('<crawler>', 'its name')
    .argument('[rid]', 'the rid of one result')
    .option('--from <moment>', 'crawls that ended then or later, such as 2026-01-31T08:00Z')
    .option('--to <moment>', 'crawls that ended before; now when absent')
    .addHelpText(
      'after',
      examples(
        'queued-crawler deliveries replay hook 6650f1c2a9b3d4e5f6071829',
        'queued-crawler deliveries replay hook --from 2026-01-31T08:00Z',
      ),
    )
    .action(
      async (
        crawler: string,
        rid: string | undefined,
        options: { from?: string; to?: string },
        command: Command,
      ) => {
        if ((rid === undefined) === (options.from === undefined)) {
          throw usageError('give a rid or --from');
        }
        using session = await openSession(context, command);
        const { client, output } = session;
        const { replayed } = await client.crawlers.replayDeliveries({
          name: crawler,
          ...defined({ rid }),
          ...toTimestamps({ from: options.from, to: options.to }),
        });
        const text = `${replayed} deliveries are due again`;
        await output.tell({ replayed: Number(replayed) }, text);
      },
    );
  return group;
}
