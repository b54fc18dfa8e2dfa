import { Command, Option } from 'commander';
import { HostOrder, HostSchema } from '../../../gen/queuedcrawler/v1/host_service_pb.ts';
import { plainText } from '../../client/message-json.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { assertConfirmed, operationsOnPart } from '../operations.ts';
import { printItems } from '../print-pages.ts';

const ORDERS = {
  queued: HostOrder.QUEUED,
  slowest: HostOrder.SLOWEST,
  failed: HostOrder.FAILED,
  running: HostOrder.RUNNING,
  rate: HostOrder.RATE,
  name: HostOrder.NAME,
} as const;

interface ListOptions {
  readonly order: keyof typeof ORDERS;
  readonly limit: number;
  readonly contains: string;
}

/** `hosts`: the hosts of a crawler, what they wait for, and what to do about it. */
export function createHostsCommand(context: CommandContext): Command {
  const group = new Command('hosts').description(
    'List, pause and purge the hosts that a crawler visits.',
  );
  group
    .command('list')
    .description('List the hosts of a crawler, with what they wait for.')
    .argument('<crawler>', 'its name')
    .addOption(
      new Option('--order <order>', 'which come first')
        .choices(Object.keys(ORDERS))
        .default('queued'),
    )
    .option('--limit <n>', 'most hosts', wholeNumber('--limit', 1, 1_000), 100)
    .option('--contains <text>', 'only hosts whose name contains this', '')
    .addHelpText('after', examples('queued-crawler hosts list shop --order slowest --limit 10'))
    .action(async (name: string, options: ListOptions, command: Command) => {
      using session = await openSession(context, command);
      await list(session, name, options);
    });

  const what = 'the host, with its port unless that is the usual one';
  const operation = operationsOnPart(context, group, 'host', what);

  operation('pause', 'Stop crawling a host; its URLs wait.', async (session, target) => {
    const { host } = await session.client.hosts.pauseHost(target);
    await session.output.tell({ host, paused: true }, `${host} is paused`);
  }).addHelpText('after', examples('queued-crawler hosts pause shop slow.example.com'));
  operation('unpause', 'Crawl a paused host again.', async (session, target) => {
    const { host } = await session.client.hosts.unpauseHost(target);
    await session.output.tell({ host, paused: false }, `${host} is crawled again`);
  }).addHelpText('after', examples('queued-crawler hosts unpause shop slow.example.com'));
  operation(
    'purge',
    'Remove every waiting URL of a host, for good.',
    async ({ client, output }, target, yes) => {
      const { name, host } = target;
      assertConfirmed(yes, `every waiting URL of ${host} in ${name} is removed`);
      let all = 0n;
      for (let isOver = false; !isOver; ) {
        const { purged, hasMore } = await client.hosts.purgeHost(target);
        all += purged;
        isOver = !hasMore;
      }
      await output.tell({ host, purged: Number(all) }, `${all} URLs removed`);
    },
  )
    .option('--yes', 'really do it')
    .addHelpText('after', examples('queued-crawler hosts purge shop gone.example.com --yes'));
  return group;
}

async function list(
  { client, output }: Session,
  name: string,
  { order, limit, contains }: ListOptions,
): Promise<void> {
  const { hosts, queuedHosts } = await client.hosts.listHosts({
    name,
    orderBy: ORDERS[order],
    maxCount: limit,
    hostContains: contains,
  });
  await printItems(output, hosts, {
    desc: HostSchema,
    heading: ['HOST', 'QUEUED', 'RUNNING', 'TRIES', 'FAILED', 'PER SECOND', 'MEAN MS', 'WAITS FOR'],
    row(plain) {
      const wait = plain.wait as { kind: string; reason?: string; until?: string } | undefined;
      const [most] = plain.failures as { reason: string }[];
      const mostly = most === undefined ? '' : ` (${most.reason})`;
      return [
        plain.host,
        plain.queued,
        plain.running,
        plain.tries,
        `${plainText(plain.failed)}${mostly}`,
        (plain.per_second as number).toFixed(1),
        plain.mean_ms,
        [wait?.kind, wait?.reason, wait?.until].filter((part) => part).join(' '),
      ];
    },
  });
  if (!output.isJson) await output.line(`${queuedHosts} hosts have URLs in the queue`);
}
