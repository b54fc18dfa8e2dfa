import type { TokenOwner } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import type { CrawlTimes, CrawlTimesReport } from '../crawls/crawl-times.ts';
import { type AccountActivities, type AccountActivity } from '../reads/account-activity.ts';
import { createCrawlerFilter } from '../reads/crawler-list.ts';
import { MAX_CRAWLERS, type RatedCrawler } from '../reads/overviews.ts';
import { createStreamPlaces } from '../stream-places.ts';
import type { OverviewPoll, Snapshot } from './overview-poll.ts';

/** What changed among an account's crawlers. */
export interface CrawlerChanges {
  readonly observedAt: Date;
  readonly changed: readonly RatedCrawler[];
  /** Names. */
  readonly removed: readonly string[];
  /** Whether everything that there was at first has been sent. */
  readonly isComplete: boolean;
  /** Whether crawlers are left out, as the account has too many. */
  readonly isPartial: boolean;
}

/** One crawler, if it changed. */
export interface CrawlerChange {
  readonly observedAt: Date;
  readonly crawler: RatedCrawler | undefined;
  readonly times: CrawlTimesReport | undefined;
}

/** What an account does, if that changed. */
export interface ActivityChange {
  readonly observedAt: Date;
  readonly activity: AccountActivity | undefined;
}

/**
 * Streams of what happens. Each yields something at least every {@link KEEP_ALIVE_MS}, and leaves out
 * what it could not deliver before it was outdated. Throws `exhausted` beyond the number of streams
 * that an account may have, and the signal's reason when it is aborted.
 */
export interface Watches {
  /** The crawlers of the token that have `nameContains` in their name. */
  crawlers(
    owner: TokenOwner,
    nameContains: string,
    signal: AbortSignal,
  ): AsyncGenerator<CrawlerChanges, void, undefined>;
  /**
   * Throws as {@link CrawlerAccess} does, `not_found` also when the crawler is removed, and
   * `failed_precondition` when the account has too many crawlers to watch this one.
   */
  crawler(
    owner: TokenOwner,
    name: string,
    signal: AbortSignal,
  ): AsyncGenerator<CrawlerChange, void, undefined>;
  activity(owner: TokenOwner, signal: AbortSignal): AsyncGenerator<ActivityChange, void, undefined>;
}

/** The longest time without a message. */
const KEEP_ALIVE_MS = 15_000;

/** Crawlers of one message. */
const MAX_CHANGED = 200;

const LIMITS = { what: 'watching streams', perAccount: 20, all: 500 };

/** Makes the streams of a process. */
export function createWatches(deps: {
  readonly poll: OverviewPoll;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly activities: Pick<AccountActivities, 'of'>;
  readonly crawlTimes: Pick<CrawlTimes, 'report'>;
  /** Default {@link KEEP_ALIVE_MS}. */
  readonly keepAliveMs?: number;
}): Watches {
  const { poll, access, activities, crawlTimes, keepAliveMs = KEEP_ALIVE_MS } = deps;
  const enter = createStreamPlaces(LIMITS);

  /** Yields what `news` makes of each snapshot, or `silence` where it makes nothing for a while. */
  async function* watch<Message>(
    { account }: TokenOwner,
    signal: AbortSignal,
    news: (snapshot: Snapshot) => Message[] | Promise<Message[]>,
    silence: (snapshot: Snapshot) => Message,
  ): AsyncGenerator<Message, void, undefined> {
    using _place = enter(account.accountId);
    let sentAt = performance.now();
    for await (const snapshot of poll.follow(account.accountId, signal)) {
      const messages = await news(snapshot);
      if (messages.length === 0 && performance.now() - sentAt < keepAliveMs) continue;
      yield* messages.length === 0 ? [silence(snapshot)] : messages;
      sentAt = performance.now();
    }
  }

  return {
    crawlers(owner, nameContains, signal) {
      const passes = createCrawlerFilter(owner, nameContains);
      const sent = new Map<string, RatedCrawler>();
      let isFirst = true;
      return watch(
        owner,
        signal,
        ({ observedAt, crawlers, isPartial }) => {
          const changed = [...crawlers.values()].filter(
            (row) => passes(row) && sent.get(row.crawler.crawlerId) !== row,
          );
          const gone = [...sent.values()].filter(({ crawler }) => !crawlers.has(crawler.crawlerId));
          for (const row of changed) sent.set(row.crawler.crawlerId, row);
          for (const { crawler } of gone) sent.delete(crawler.crawlerId);
          const removed = gone.map(({ crawler }) => crawler.name);
          const all = inParts({ observedAt, changed, removed, isPartial }, isFirst);
          isFirst = false;
          return all;
        },
        ({ observedAt, isPartial }) => ({
          observedAt,
          changed: [],
          removed: [],
          isComplete: true,
          isPartial,
        }),
      );
    },

    async *crawler(owner, name, signal) {
      const { crawlerId } = await access.find(owner, name);
      let sent: RatedCrawler | undefined;
      yield* watch<CrawlerChange>(
        owner,
        signal,
        async ({ observedAt, crawlers, isPartial }) => {
          const crawler = crawlers.get(crawlerId);
          // It was removed, or made after this was read.
          if (crawler === undefined) await access.find(owner, name);
          if (crawler === undefined && isPartial) throw tooManyToWatch();
          if (crawler === undefined || crawler === sent) return [];
          sent = crawler;
          return [{ observedAt, crawler, times: crawlTimes.report(crawlerId) }];
        },
        ({ observedAt }) => ({
          observedAt,
          crawler: undefined,
          times: crawlTimes.report(crawlerId),
        }),
      );
    },

    activity(owner, signal) {
      let sent = '';
      return watch<ActivityChange>(
        owner,
        signal,
        ({ observedAt, crawlers, isPartial }) => {
          const activity = activities.of({
            observedAt,
            crawlers: [...crawlers.values()],
            isPartial,
          });
          const text = comparableText(activity);
          if (text === sent) return [];
          sent = text;
          return [{ observedAt, activity }];
        },
        ({ observedAt }) => ({ observedAt, activity: undefined }),
      );
    },
  };
}

function tooManyToWatch(): DomainError {
  return new DomainError(
    'failed_precondition',
    'too_many_crawlers_to_watch',
    `Of an account only the first ${MAX_CRAWLERS} crawlers by name are watched. Call GetCrawler for this one.`,
  );
}

/** Without the times at which it was measured. */
function comparableText(activity: AccountActivity): string {
  const isTime = (name: string): boolean => name === 'observedAt' || name === 'measuredMs';
  return JSON.stringify(activity, (name, value: unknown) => (isTime(name) ? undefined : value));
}

/** Messages of a bounded length; the last one completes them. None when there is nothing to say. */
function inParts(
  { observedAt, changed, removed, isPartial }: Omit<CrawlerChanges, 'isComplete'>,
  isFirst: boolean,
): CrawlerChanges[] {
  if (!isFirst && changed.length === 0 && removed.length === 0) return [];
  const parts: CrawlerChanges[] = [];
  for (let at = 0; at < changed.length || at === 0; at += MAX_CHANGED) {
    const isLast = at + MAX_CHANGED >= changed.length;
    parts.push({
      observedAt,
      changed: changed.slice(at, at + MAX_CHANGED),
      removed: isLast ? removed : [],
      isComplete: isLast || !isFirst,
      isPartial,
    });
  }
  return parts;
}
