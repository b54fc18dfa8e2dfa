import { Command, Option } from 'commander';
import {
  ActOnMatchesResponseSchema,
  CrawlOutcome,
  MatchAction,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { defined } from '../../domain/defined.ts';
import { type CliError, usageError } from '../cli-error.ts';
import { type CommandContext, openSession, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { createProgress } from '../progress.ts';
import { toTimestamps } from '../timestamp-option.ts';
import { DELIVERY_STATES } from './deliveries.ts';
import { JOB_STATES } from './jobs.ts';

const ACTIONS = {
  'remove-jobs': MatchAction.REMOVE_JOBS,
  'remove-results': MatchAction.REMOVE_RESULTS,
  replay: MatchAction.REPLAY,
  'push-again': MatchAction.PUSH_AGAIN,
} as const;
const OUTCOMES = {
  completed: CrawlOutcome.COMPLETED,
  failed: CrawlOutcome.FAILED,
} as const;

interface ActOptions {
  readonly urlContains?: string;
  readonly host?: string;
  readonly batch?: string;
  readonly reason?: string;
  readonly cbStatus?: number;
  readonly originalStatus?: number;
  readonly from?: string;
  readonly to?: string;
  readonly jobState?: keyof typeof JOB_STATES;
  readonly deliveryState?: keyof typeof DELIVERY_STATES;
  readonly outcome?: keyof typeof OUTCOMES;
  readonly estimate?: boolean;
  readonly yes?: boolean;
}

/** `act`: something is done with all jobs, results or deliveries that a filter selects. */
export function createActCommand(context: CommandContext): Command {
  const status = (name: string) => wholeNumber(name, 0, 999);
  return new Command('act')
    .description(
      'Remove, replay or push again all jobs, results or deliveries of a crawler that a filter selects. Interrupted, it stops; what is done stays done.',
    )
    .argument('<crawler>', 'its name')
    .argument('<action>', `one of ${Object.keys(ACTIONS).join(', ')}`)
    .option('--url-contains <text>', 'only URLs with this part')
    .option('--host <host>', 'only URLs of this host, with its port unless that is the default one')
    .option('--batch <name>', 'only those of this batch')
    .option(
      '--reason <reason>',
      'only those that failed for this reason, as "jobs failures" names it',
    )
    .option('--cb-status <status>', 'only those with this status', status('--cb-status'))
    .option(
      '--original-status <status>',
      'only those with this status of the site',
      status('--original-status'),
    )
    .option('--from <time>', 'only those of this time or later')
    .option('--to <time>', 'only those before this time')
    .addOption(
      new Option('--job-state <state>', 'only jobs in it').choices(Object.keys(JOB_STATES)),
    )
    .addOption(
      new Option('--delivery-state <state>', 'only deliveries in it').choices(
        Object.keys(DELIVERY_STATES),
      ),
    )
    .addOption(
      new Option('--outcome <outcome>', 'only crawls that ended so').choices(Object.keys(OUTCOMES)),
    )
    .option('--estimate', 'only count them')
    .option('--yes', 'really act on everything, where no filter is given')
    .addHelpText(
      'after',
      examples(
        'queued-crawler act shop remove-jobs --host old.example --estimate',
        'queued-crawler act hook replay --delivery-state failed --from 2026-07-01T00:00:00Z',
        'queued-crawler act shop push-again --reason timeout',
      ),
    )
    .action(async (name: string, action: string, options: ActOptions, command: Command) => {
      if (!isAction(action)) {
        command.error(`error: the action must be one of ${Object.keys(ACTIONS).join(', ')}`);
      }
      using session = await openSession(context, command);
      const { client, output, signal } = session;
      const { from, to, jobState, deliveryState, outcome, estimate = false } = options;
      const { urlContains = '', host = '', batch = '', reason = '' } = options;
      const { cbStatus, originalStatus } = options;
      const request = {
        name,
        action: ACTIONS[action],
        estimate,
        filter: {
          urlContains,
          host,
          batch,
          reason,
          ...defined({ cbStatus, originalStatus }),
          ...toTimestamps({ from, to }),
        },
        ...defined({
          jobState: jobState && JOB_STATES[jobState],
          deliveryState: deliveryState && DELIVERY_STATES[deliveryState],
          outcome: outcome && OUTCOMES[outcome],
        }),
      };
      if (!isLimited(action, options)) {
        let all = 0;
        const counted = client.activity.actOnMatches({ ...request, estimate: true }, { signal });
        for await (const { matched: found } of counted) all = found;
        throw unlimited(name, action, all);
      }
      const progress = createProgress(output, 'matches');
      let matched = 0;
      let done = 0;
      let refused = 0;
      for await (const each of client.activity.actOnMatches(request, { signal })) {
        progress.add(each.matched - matched);
        ({ matched, done, refused } = each);
        if (output.isJson) await output.json(toPlain(ActOnMatchesResponseSchema, each));
      }
      progress.end();
      if (refused > 0) context.setExitCode(EXIT_CODE.partly);
      if (output.isJson) return;
      const left = refused === 0 ? '' : `, ${refused} refused`;
      await output.line(estimate ? `${matched} match` : `${done} of ${matched} done${left}`);
    });
}

function isAction(text: string): text is keyof typeof ACTIONS {
  return Object.hasOwn(ACTIONS, text);
}

/** What an action does to all where no filter is given, and the filters that do not apply to it. */
const UNLIMITED: Readonly<
  Record<
    keyof typeof ACTIONS,
    { readonly what: string; readonly others: readonly (keyof ActOptions)[] }
  >
> = {
  'remove-jobs': { what: 'queued URL of NAME is removed', others: ['deliveryState', 'outcome'] },
  'remove-results': { what: 'result of NAME is removed', others: ['deliveryState', 'jobState'] },
  replay: { what: 'delivery of NAME is made again', others: ['jobState'] },
  'push-again': {
    what: 'failed crawl of NAME is pushed again',
    others: ['jobState', 'deliveryState', 'outcome'],
  },
};

/** Whether a filter limits the action, the user has said `--yes`, or nothing is done. */
function isLimited(action: keyof typeof ACTIONS, options: ActOptions): boolean {
  const { yes = false, estimate = false, ...filter } = options;
  if (yes || estimate) return true;
  const { others } = UNLIMITED[action];
  const given = Object.entries(filter).filter(([name]) => !others.some((other) => other === name));
  // An empty text selects all, as an absent one.
  return given.some(([, value]) => (value ?? '') !== '');
}

/** The refusal of an action on all, with the number that it would concern. */
function unlimited(crawler: string, action: keyof typeof ACTIONS, all: number): CliError {
  const what = UNLIMITED[action].what.replace('NAME', () => crawler);
  return usageError(
    `without a filter every ${what} (${all} of them); give a filter, or --yes to do it`,
  );
}
