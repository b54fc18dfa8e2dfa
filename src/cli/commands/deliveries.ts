import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Command } from 'commander';
import { DeliverySchema } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { plainText, toPlain } from '../message-json.ts';
import { printable } from '../output.ts';

/** `deliveries`: what became of results on their way to a callback URL. */
export function createDeliveriesCommand(context: CommandContext): Command {
  const group = new Command('deliveries').description(
    'Show deliveries to a webhook, and make them again.',
  );
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
          [attempt, started_at, status, duration_ms, error].map((each) =>
            printable(plainText(each)),
          ),
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
          ...(rid === undefined ? {} : { rid }),
          ...moment('from', options.from),
          ...moment('to', options.to),
        });
        if (output.isJson) await output.json({ replayed: Number(replayed) });
        else await output.line(`${replayed} deliveries are due again`);
      },
    );
  return group;
}

function moment(name: 'from' | 'to', text: string | undefined) {
  if (text === undefined) return {};
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) throw usageError(`--${name} must be a moment in ISO 8601`);
  return { [name]: timestampFromDate(date) };
}
