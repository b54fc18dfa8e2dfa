import { Argument, Command } from 'commander';
import { type Account, AccountSchema } from '../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { AccountLimitsSchema } from '../../../gen/queuedcrawler/v1/quotas_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, collect, openSession, type Session } from '../command-context.ts';
import { examples } from '../examples.ts';
import { fillMessage, parsePairs } from '../fill-message.ts';
import { assertConfirmed, operationsOn } from '../operations.ts';
import type { Output } from '../output.ts';

interface AccountOptions {
  readonly limit?: readonly string[];
  readonly email?: string;
  readonly yes?: boolean;
}

const LIMIT_HELP = `a limit of its own, may be repeated; 0 means no limit. ${AccountLimitsSchema.fields.map(({ name }) => name).join(', ')}`;

/** `account`: the clients of the service, for its operator. */
export function createAccountCommand(context: CommandContext): Command {
  const group = new Command('account').description('Manage accounts, with the admin token.');

  const operation = operationsOn<AccountOptions>(context, group, 'account');

  group
    .command('list')
    .description('List accounts by name.')
    .addHelpText('after', examples('queued-crawler account list'))
    .action(async (_options: unknown, command: Command) => {
      using session = await openSession(context, command);
      await list(session);
    });
  operation(
    'show',
    'Show an account, its limits and their use.',
    'show shop',
    async ({ admin, output }, name) => {
      const { account } = await admin.accounts.getAccount({ name });
      if (account !== undefined) await show(output, account);
    },
  );
  operation(
    'create',
    'Make an account; its tokens are shown this once.',
    'create shop --email owner@example.com --limit crawlers=10',
    async ({ admin, output }, name, { email = '', limit }) => {
      const made = await admin.accounts.createAccount({ name, email, ...limitsOf(limit) });
      const { normalToken, javascriptToken } = made;
      if (output.isJson) {
        await output.json({ name, normal_token: normalToken, javascript_token: javascriptToken });
        return;
      }
      await output.line(`Normal token:     ${normalToken}`);
      await output.line(`JavaScript token: ${javascriptToken}`);
    },
  )
    .option('--email <address>', 'who is told of paused crawlers and a full queue')
    .option('--limit <name=value>', LIMIT_HELP, collect);
  operation(
    'update',
    'Change the address of an account (an empty one is nobody), or all limits of its own.',
    'update shop --email owner@example.com',
    async ({ admin, output }, name, { email, limit }) => {
      if (email === undefined && limit === undefined) throw usageError('give --email or --limit');
      const { account } = await admin.accounts.updateAccount({
        name,
        ...(email === undefined ? {} : { email }),
        ...limitsOf(limit),
      });
      if (account !== undefined) await show(output, account);
    },
  )
    .option('--email <address>', 'who is told of paused crawlers and a full queue')
    .option('--limit <name=value>', LIMIT_HELP, collect);
  operation(
    'delete',
    'Remove an account that has no crawlers left, with its results.',
    'delete shop --yes',
    async ({ admin, output }, name, { yes }) => {
      assertConfirmed(yes, `${name} and its results are removed`);
      await admin.accounts.deleteAccount({ name });
      await output.tell({ deleted: name }, `${name} is removed`);
    },
  ).option('--yes', 'really do it');
  group
    .command('rotate-token')
    .description('Replace a token at once; the new one is shown this once.')
    .argument('<account>', 'its name')
    .addArgument(new Argument('<type>', 'which token').choices(['normal', 'javascript']))
    .addHelpText('after', examples('queued-crawler account rotate-token shop normal'))
    .action(async (name: string, type: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const tokenType = type === 'normal' ? TokenType.NORMAL : TokenType.JAVASCRIPT;
      const { token } = await session.admin.accounts.rotateToken({ name, tokenType });
      await session.output.tell({ name, type, token }, token);
    });
  return group;
}

/** The limits of an account's own, of which an update replaces all. */
function limitsOf(texts: readonly string[] | undefined) {
  if (texts === undefined) return {};
  return { limits: fillMessage(AccountLimitsSchema, parsePairs('--limit', texts)) };
}

async function list({ admin, output }: Session): Promise<void> {
  const rows: string[][] = [];
  let pageToken = '';
  do {
    const page = await admin.accounts.listAccounts({ pageSize: 1_000, pageToken });
    for (const account of page.accounts) {
      if (output.isJson) await output.json(toPlain(AccountSchema, account));
      else {
        const { name, email, queued, pushesPaused } = account;
        rows.push([name, email, String(queued), pushesPaused ? 'paused' : 'accepted']);
      }
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  if (!output.isJson) await output.table(['NAME', 'EMAIL', 'QUEUED', 'PUSHES'], rows);
}

async function show(output: Output, account: Account): Promise<void> {
  const plain = toPlain(AccountSchema, account);
  if (output.isJson) return output.json(plain);
  const { quotas = {}, limits: _limits, ...facts } = plain;
  const rows = Object.entries(facts).map(([name, value]) => [name, plainText(value)]);
  for (const [name, value] of Object.entries(quotas as object)) {
    const { limit = 0, used = 0 } = Object(value) as { limit?: number; used?: number };
    rows.push([name, limit === 0 ? `${used}, no limit` : `${used} of ${limit}`]);
  }
  const [first = [], ...others] = rows;
  await output.table(first, others);
}
