import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { type ProxyPool, ProxyPoolSchema } from '../../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { defined } from '../../domain/defined.ts';
import { unreadable, usageError } from '../cli-error.ts';
import {
  type CommandContext,
  collect,
  openSession,
  type Session,
  wholeNumber,
} from '../command-context.ts';
import { examples } from '../examples.ts';
import { assertConfirmed, operationsOn } from '../operations.ts';
import { printableValue } from '../output.ts';
import { printItems } from '../print-pages.ts';

interface PoolOptions {
  readonly proxy?: readonly string[];
  readonly file?: string;
  readonly gateway?: string;
  readonly sessions?: number;
  readonly countries?: string;
  readonly yes?: boolean;
}

const FILE = 'pool.txt';

/** `proxies`: the pools of proxies that an account makes for itself. */
export function createProxiesCommand(context: CommandContext): Command {
  const group = new Command('proxies').description(
    "Manage the account's own pools of proxies. Their URLs are never shown again.",
  );
  group
    .command('list')
    .description('List the pools of the account.')
    .addHelpText('after', examples('queued-crawler proxies list'))
    .action(async (_options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { pools } = await session.client.proxies.listProxyPools({});
      await printItems(session.output, pools, {
        desc: ProxyPoolSchema,
        heading: ['NAME', 'KIND', 'PROXIES', 'COUNTRIES'],
        row: (plain) => [
          plain.name,
          plain.gateway === true ? 'gateway' : 'list',
          plain.proxy_count,
          (plain.countries as string[]).join(','),
        ],
      });
    });

  const operation = operationsOn<PoolOptions>(context, group, 'pool');

  const withPool = (command: Command): Command =>
    command
      .option('--proxy <url>', 'a proxy, http, https or socks5; may be repeated', collect)
      .option('--file <path>', 'read proxies from a file, one URL a line; - for the input')
      .option('--gateway <url>', 'in place of proxies: one with {session} in its user name')
      .option('--sessions <n>', 'sessions of the gateway', wholeNumber('--sessions', 1, 10_000))
      .option('--countries <list>', 'ISO countries that its sites see, separated by commas');

  operation(
    'show',
    'Show the proxies of a pool, and what the answering process knows of them.',
    'show fast',
    async (session, name) => {
      const { pool } = await session.client.proxies.getProxyPool({ name });
      if (pool !== undefined) await show(session, pool);
    },
  );
  withPool(
    operation(
      'create',
      'Make a pool.',
      `create fast --file ${FILE}`,
      async (session, name, given) => {
        const pool = await poolOf(context, given);
        const made = await session.client.proxies.createProxyPool({ name, ...pool });
        if (made.pool !== undefined) await show(session, made.pool);
      },
    ),
  );
  withPool(
    operation(
      'update',
      'Change a pool. A list of proxies, or a gateway, takes the place of all that was there.',
      `update fast --file ${FILE} --countries DE,FR`,
      async (session, name, given) => {
        const pool = await poolOf(context, given);
        if (Object.keys(pool).length === 0) throw usageError('give --proxy, --file or another');
        const changed = await session.client.proxies.updateProxyPool({ name, ...pool });
        if (changed.pool !== undefined) await show(session, changed.pool);
      },
    ),
  );
  operation(
    'delete',
    'Remove a pool. URLs that need it fail.',
    'delete fast --yes',
    async ({ client, output }, name, { yes }) => {
      assertConfirmed(yes, `URLs that need ${name} fail`);
      await client.proxies.deleteProxyPool({ name });
      await output.tell({ deleted: name }, `${name} is removed`);
    },
  ).option('--yes', 'really do it');
  return group;
}

async function poolOf(
  { stdin }: CommandContext,
  { proxy = [], file, gateway, sessions, countries }: PoolOptions,
) {
  const read = file === undefined ? '' : await (file === '-' ? text(stdin) : readLines(file));
  const listed = read.split('\n').map((line) => line.trim());
  const proxies = [...proxy, ...listed.filter((line) => line !== '' && !line.startsWith('#'))];
  return {
    ...(proxies.length === 0 ? {} : { proxies }),
    ...defined({ gateway, sessions, countries }),
  };
}

async function readLines(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function show({ output }: Session, pool: ProxyPool): Promise<void> {
  if (output.isJson) return output.json(toPlain(ProxyPoolSchema, pool));
  await output.table(
    ['PROXY', 'PAGES', 'BLOCKS', 'FAILURES', 'BYTES', 'STATE'],
    pool.proxies.map((each) =>
      [
        each.proxy,
        each.pages,
        each.blocks,
        each.failures,
        each.receivedBytes + each.sentBytes,
        each.trouble ?? 'usable',
      ].map(printableValue),
    ),
  );
}
