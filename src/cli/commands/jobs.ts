import { Command, Option } from 'commander';
import {
  FailureGroupSchema,
  FailureKind,
  JobState,
  QueuedJobSchema,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { AgainResultSchema } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { printItems, printPages } from '../print-pages.ts';
import { toTimestamps } from '../timestamp-option.ts';

/** States of queued jobs, by their names. The service does not list or select running ones. */
export const JOB_STATES = {
  waiting: JobState.WAITING,
  retrying: JobState.RETRYING,
  scheduled: JobState.SCHEDULED,
} as const;
const KINDS = {
  crawl: FailureKind.CRAWL,
  retry: FailureKind.RETRY,
  delivery: FailureKind.DELIVERY,
} as const;

function othersThan(state: keyof typeof JOB_STATES): string {
  return Object.keys(JOB_STATES)
    .filter((each) => each !== state)
    .join(' or ');
}

/** `jobs`: the URLs in the queue of a crawler, and why crawls fail. */
export function createJobsCommand(context: CommandContext): Command {
  const group = new Command('jobs').description(
    'List and remove queued URLs; tell why crawls fail, and push them again.',
  );
  group
    .command('list')
    .description(
      'List the queued jobs of a crawler in one state, oldest first; running ones are not listed.',
    )
    .argument('<crawler>', 'its name')
    .addOption(
      new Option('--state <state>', 'which').choices(Object.keys(JOB_STATES)).default('waiting'),
    )
    .option('--limit <n>', 'most jobs', wholeNumber('--limit', 1, 1_000_000), 100)
    .addHelpText(
      'after',
      examples(
        'queued-crawler jobs list shop --state retrying',
        'queued-crawler --json jobs list shop --limit 100000 | jq -r .url',
      ),
    )
    .action(
      async (
        name: string,
        { state, limit }: { state: keyof typeof JOB_STATES; limit: number },
        command: Command,
      ) => {
        using session = await openSession(context, command);
        await printPages(session.output, limit, {
          desc: QueuedJobSchema,
          async read(pageSize, pageToken) {
            const request = { name, state: JOB_STATES[state], pageSize, pageToken };
            const { jobs, nextPageToken } = await session.client.activity.listJobs(request);
            return { items: jobs, nextPageToken };
          },
          none: `no jobs are ${state}; --state shows those that are ${othersThan(state)}`,
          heading: ['RID', 'STATE', 'TRIES', 'PUSHED', 'NEXT TRY', 'LAST FAILURE', 'URL'],
          row: (plain) => [
            plain.rid,
            plain.state,
            plain.tries,
            plain.pushed_at,
            plain.next_try_at,
            plain.last_failure,
            plain.url,
          ],
        });
      },
    );
  group
    .command('delete')
    .description('Remove one URL from the queue of a crawler.')
    .argument('<crawler>', 'its name')
    .argument('<rid>', 'the rid')
    .addHelpText('after', examples('queued-crawler jobs delete shop 6650f1c2a9b3d4e5f6071829'))
    .action(async (name: string, rid: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      await session.client.crawlers.deleteJob({ name, rid });
      await session.output.tell({ deleted: rid }, `${rid} is removed`);
    });
  group
    .command('failures')
    .description('Group what has failed of a crawler by reason, with examples.')
    .argument('<crawler>', 'its name')
    .addOption(
      new Option('--kind <kind>', 'ended crawls, jobs that are retried, or deliveries')
        .choices(Object.keys(KINDS))
        .default('crawl'),
    )
    .addHelpText('after', examples('queued-crawler jobs failures shop --kind retry'))
    .action(async (name: string, { kind }: { kind: keyof typeof KINDS }, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const { groups } = await client.activity.listFailures({ name, kind: KINDS[kind] });
      await printItems(output, groups, {
        desc: FailureGroupSchema,
        heading: ['COUNT', 'REASON', 'CB_STATUS', 'ORIGINAL', 'LATEST', 'FOR EXAMPLE'],
        row: (plain) => [
          plain.count,
          plain.reason,
          plain.cb_status,
          plain.original_status,
          plain.latest_at,
          (plain.examples as { url: string }[])[0]?.url,
        ],
      });
    });
  group
    .command('again')
    .description(
      'Push failed crawls again as they were pushed: those that are selected by rids or options.',
    )
    .argument('<crawler>', 'its name')
    .argument('[rids...]', 'only these')
    .option('--batch <name>', 'only those of this batch')
    .option(
      '--reason <reason>',
      'only those that failed for this reason, as "jobs failures" names it',
    )
    .option('--from <time>', 'only those that ended at this time or later')
    .option('--to <time>', 'only those that ended before this time')
    .option('--into <name>', 'the batch of the new pushes')
    .addHelpText(
      'after',
      examples(
        'queued-crawler jobs again shop --reason timeout',
        'queued-crawler jobs again shop --batch monday --into monday-2',
      ),
    )
    .action(async (crawler: string, rids: string[], options: AgainOptions, command: Command) => {
      using session = await openSession(context, command);
      const refused = await pushAgain(session, crawler, rids, options);
      if (refused > 0) context.setExitCode(EXIT_CODE.partly);
    });
  return group;
}

interface AgainOptions {
  readonly batch?: string;
  readonly reason?: string;
  readonly from?: string;
  readonly to?: string;
  readonly into?: string;
}

/** Prints the new rid of each failed crawl, and returns how many were refused. */
async function pushAgain(
  { client, output, signal }: Session,
  crawler: string,
  rids: readonly string[],
  { batch = '', reason = '', from, to, into = '' }: AgainOptions,
): Promise<number> {
  const range = toTimestamps({ from, to });
  const request = { crawler, rids: [...rids], batch, reason, intoBatch: into, ...range };
  let accepted = 0;
  let duplicates = 0;
  let refused = 0;
  for await (const { results } of client.pushes.pushAgain(request, { signal })) {
    for (const result of results) {
      const { againOf, rid, duplicate, error } = result;
      if (error !== undefined) refused += 1;
      else if (duplicate) duplicates += 1;
      else accepted += 1;
      if (output.isJson) await output.json(toPlain(AgainResultSchema, result));
      else if (error !== undefined)
        output.note(printable(`${againOf}: ${error.message} (${error.code})`));
      else await output.line(`${rid} ${againOf}`);
    }
  }
  const before = duplicates === 0 ? '' : `, ${duplicates} pushed again before`;
  output.note(`${accepted} accepted${before}, ${refused} refused`);
  return refused;
}
