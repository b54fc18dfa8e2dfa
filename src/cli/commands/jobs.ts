import { Command, Option } from 'commander';
import {
  FailureGroupSchema,
  FailureKind,
  JobState,
  QueuedJobSchema,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, openSession, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { printable } from '../output.ts';
import { printPages } from '../print-pages.ts';

const STATES = {
  waiting: JobState.WAITING,
  retrying: JobState.RETRYING,
  scheduled: JobState.SCHEDULED,
  running: JobState.RUNNING,
} as const;
const KINDS = {
  crawl: FailureKind.CRAWL,
  retry: FailureKind.RETRY,
  delivery: FailureKind.DELIVERY,
} as const;

function othersThan(state: keyof typeof STATES): string {
  return Object.keys(STATES)
    .filter((each) => each !== state)
    .join(' or ');
}

/** `jobs`: the URLs in the queue of a crawler, and why crawls fail. */
export function createJobsCommand(context: CommandContext): Command {
  const group = new Command('jobs').description(
    'List and remove queued URLs; tell why crawls fail.',
  );
  group
    .command('list')
    .description('List the jobs of a crawler in one state, oldest first.')
    .argument('<crawler>', 'its name')
    .addOption(
      new Option('--state <state>', 'which').choices(Object.keys(STATES)).default('waiting'),
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
        { state, limit }: { state: keyof typeof STATES; limit: number },
        command: Command,
      ) => {
        using session = await openSession(context, command);
        await printPages(session.output, limit, {
          desc: QueuedJobSchema,
          async read(pageSize, pageToken) {
            const request = { name, state: STATES[state], pageSize, pageToken };
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
      if (session.output.isJson) await session.output.json({ deleted: rid });
      else await session.output.line(`${rid} is removed`);
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
      if (KINDS[kind] === undefined) throw usageError(`there are no failures of kind ${kind}`);
      using session = await openSession(context, command);
      const { client, output } = session;
      const { groups } = await client.activity.listFailures({ name, kind: KINDS[kind] });
      if (output.isJson) {
        for (const each of groups) await output.json(toPlain(FailureGroupSchema, each));
        return;
      }
      await output.table(
        ['COUNT', 'REASON', 'CB_STATUS', 'ORIGINAL', 'LATEST', 'FOR EXAMPLE'],
        groups.map((each) => {
          const plain = toPlain(FailureGroupSchema, each);
          const { count, reason, cb_status: cbStatus, original_status: original } = plain;
          const values = [
            count,
            reason,
            cbStatus,
            original,
            plain.latest_at,
            each.examples[0]?.url,
          ];
          return values.map((value) => printable(plainText(value)));
        }),
      );
    });
  return group;
}
