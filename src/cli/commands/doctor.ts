import { Command } from 'commander';
import {
  AttentionSchema,
  CrawlerStatus,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { SetupState } from '../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { CrawlerClient } from '../../client/client.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { defined } from '../../domain/defined.ts';
import { toDay } from '../../domain/stats.ts';
import { tellFailure } from '../cli-error.ts';
import { type CliSettings, clientOf } from '../cli-settings.ts';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { profilesPath } from '../profiles.ts';
import { askHealth } from './health.ts';

/** What one look found. */
interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warning' | 'missing' | 'failed';
  readonly detail: string;
}

/** Characters of an answer that are shown. */
const MAX_TEXT = 80;
const ONCE = { attempts: 1 } as const;
const CALL_MS = 5_000;
const SETUP_MS = 40_000;
const CRAWL_MS = 120_000;
const SETUP_STATES: Readonly<Record<SetupState, Finding['state']>> = {
  [SetupState.UNSPECIFIED]: 'warning',
  [SetupState.OK]: 'ok',
  [SetupState.MISSING]: 'missing',
  [SetupState.FAILED]: 'failed',
  [SetupState.UNCHECKED]: 'warning',
};
/** A queue that is this full is worth a warning. */
const NEARLY_FULL = 0.9;
/** Crawlers in trouble that are named. */
const MAX_TROUBLED = 20;
const STYLES = { ok: 'green', warning: 'yellow', missing: 'yellow', failed: 'red' } as const;

/** `doctor`: what is set up, reachable and missing. */
export function createDoctorCommand(context: CommandContext): Command {
  return new Command('doctor')
    .description('Check what is set up, whether the service answers, and what is missing.')
    .option('--crawl <url>', 'crawl this URL with each token, too')
    .addHelpText(
      'after',
      examples('queued-crawler doctor', 'queued-crawler doctor --crawl https://example.com/'),
    )
    .action(async (options: { crawl?: string }, command: Command) => {
      using session = await openSession(context, command);
      const { settings, output } = session;
      const findings: Finding[] = [];
      for await (const finding of look(settings, profilesPath(context.env), options.crawl)) {
        findings.push(finding);
        if (output.isJson) await output.json(finding);
      }
      if (!output.isJson) {
        await output.table(
          ['CHECK', 'STATE', ''],
          findings.map(({ check, state, detail }) => {
            return [check, output.paint(STYLES[state], state), printable(detail)];
          }),
        );
      }
      if (findings.some(({ state }) => state === 'failed')) context.setExitCode(EXIT_CODE.failed);
    });
}

async function* look(
  settings: CliSettings,
  path: string,
  crawlUrl: string | undefined,
): AsyncGenerator<Finding, void, undefined> {
  const { profileName, hasProfile, token, javascriptToken, adminToken } = settings;
  yield hasProfile
    ? { check: 'profile', state: 'ok', detail: `${profileName} in ${path}` }
    : { check: 'profile', state: 'missing', detail: 'run "queued-crawler init"' };
  const hasToken = [token, javascriptToken, adminToken].some((given) => given !== undefined);
  if (!hasToken) yield await lookAtService(settings);
  yield* lookAtToken(settings, 'token', token, crawlUrl);
  if (javascriptToken !== token) {
    yield* lookAtToken(settings, 'JavaScript token', javascriptToken, crawlUrl);
  }
  if (adminToken === undefined) {
    const detail = 'for "account", and for the set-up of the service in this list';
    yield { check: 'admin token', state: 'missing', detail };
    return;
  }
  await using admin = clientOf(settings, adminToken, ONCE);
  const found = await attempt(settings, 'service', async () => {
    const { version, database, processes } = await admin.operator.getInstallation(
      {},
      { timeoutMs: CALL_MS },
    );
    const kept = `${database?.kind} ${database?.version}, ${database?.latencyMs.toFixed(1)} ms`;
    return { state: 'ok', detail: `${version}, ${processes.length} processes, ${kept}` };
  });
  yield found;
  if (found.state === 'ok') yield* lookAtSetup(settings, admin);
}

/** Whether the service answers; needs no token. */
async function lookAtService(settings: CliSettings): Promise<Finding> {
  const { url, ca } = settings;
  return attempt(settings, 'service', async () => {
    const { status, text } = await askHealth('readyz', url, defined({ ca }));
    return status === 200
      ? { state: 'ok', detail: `answers at ${url}` }
      : { state: 'failed', detail: `HTTP ${status} at ${url}: ${text.slice(0, MAX_TEXT)}` };
  });
}

/** What the service says of its own set-up: it tries mail and browser. */
async function* lookAtSetup(
  { url }: CliSettings,
  admin: CrawlerClient,
): AsyncGenerator<Finding, void, undefined> {
  try {
    const { items } = await admin.operator.getSetup({ check: true }, { timeoutMs: SETUP_MS });
    for (const { name, state, finding, advice, settings } of items) {
      const how = [advice, settings.length === 0 ? '' : `(${settings.join(', ')})`];
      yield {
        check: name,
        state: SETUP_STATES[state] ?? 'warning',
        detail: [finding, ...(state === SetupState.OK ? [] : how)]
          .filter((text) => text !== '')
          .join(' '),
      };
    }
  } catch (error) {
    yield { check: 'set-up', state: 'failed', detail: tellFailure(error, url).message };
  }
}

async function* lookAtToken(
  settings: CliSettings,
  check: string,
  token: string | undefined,
  crawlUrl: string | undefined,
): AsyncGenerator<Finding, void, undefined> {
  if (token === undefined) {
    const detail =
      check === 'token'
        ? 'give it to "queued-crawler init"'
        : 'for crawlers that render pages in a browser';
    yield { check, state: 'missing', detail };
    return;
  }
  await using client = clientOf(settings, token, ONCE);
  const found = await attempt(settings, check, async () => {
    const { totalCount } = await client.storage.countResults({}, { timeoutMs: CALL_MS });
    return { state: 'ok', detail: `accepted at ${settings.url}; ${totalCount} results stored` };
  });
  yield found;
  if (found.state !== 'ok') return;
  if (check === 'token') yield* lookAtWork(settings, client);
  if (crawlUrl === undefined) return;
  yield await attempt(settings, `crawl with the ${check}`, async () => {
    const { cbStatus, originalStatus, failure } = await client.pushes.crawl(
      { url: crawlUrl },
      { timeoutMs: CRAWL_MS },
    );
    const detail = `cb_status ${cbStatus}, original_status ${originalStatus} ${failure ?? ''}`;
    return { state: cbStatus === 200 ? 'ok' : 'failed', detail: detail.trim() };
  });
}

async function* lookAtWork(
  settings: CliSettings,
  client: CrawlerClient,
): AsyncGenerator<Finding, void, undefined> {
  // Nothing below needs the history, which may be long.
  const request = { historyFrom: toDay(new Date()), withoutCrawlerHistory: true };
  yield await attempt(settings, 'crawlers', async () => {
    const { crawlers } = await client.stats.getStats(request, { timeoutMs: CALL_MS });
    const paused = crawlers.filter(({ status }) => status === CrawlerStatus.PAUSED);
    return paused.length === 0
      ? { state: 'ok', detail: `${crawlers.length}, none paused` }
      : { state: 'warning', detail: `paused: ${paused.map(({ name }) => name).join(', ')}` };
  });
  yield* lookAtTrouble(settings, client);
  yield await attempt(settings, 'queue', async () => {
    const { queue } = await client.stats.getStats(request, { timeoutMs: CALL_MS });
    const queued = Number((queue?.waiting ?? 0n) + (queue?.retrying ?? 0n));
    const limit = Number(queue?.limit ?? 0n);
    const isFull = limit > 0 && queued > NEARLY_FULL * limit;
    return { state: isFull ? 'warning' : 'ok', detail: `${queued} of ${limit} URLs` };
  });
}

/** The crawlers that need attention, one finding for each trouble. */
async function* lookAtTrouble(
  settings: CliSettings,
  client: CrawlerClient,
): AsyncGenerator<Finding, void, undefined> {
  try {
    const { crawlers } = await client.crawlers.listCrawlers(
      { needsAttention: true, withActivity: true, pageSize: MAX_TROUBLED },
      { timeoutMs: CALL_MS },
    );
    for (const crawler of crawlers) {
      for (const attention of crawler.attention) {
        const { reason, since } = toPlain(AttentionSchema, attention);
        const { detail, nextStep } = attention;
        const what = `${plainText(reason)} since ${plainText(since)}: ${detail}. ${nextStep}`;
        yield { check: `crawler ${crawler.name}`, state: 'warning', detail: what };
      }
    }
  } catch (error) {
    yield { check: 'attention', state: 'failed', detail: tellFailure(error, settings.url).message };
  }
}

async function attempt(
  { url }: CliSettings,
  check: string,
  work: () => Promise<Omit<Finding, 'check'>>,
): Promise<Finding> {
  try {
    return { check, ...(await work()) };
  } catch (error) {
    return { check, state: 'failed', detail: tellFailure(error, url).message };
  }
}
