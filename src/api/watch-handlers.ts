import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';
import type { TokenOwner } from '../domain/account.ts';
import { toWall, type WallClock } from '../domain/clock.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { Watches } from '../service/watches/watches.ts';
import { callerOf } from './caller-of.ts';
import { toCrawlerMessage } from './crawler-messages.ts';
import { toAccountActivityMessage } from './listing-messages.ts';
import { type Call, type Method, toMethods } from './method.ts';

/** The methods of the watch service. Opening a stream counts as a call of the account. */
export function watchHandlers(deps: {
  readonly tokenWatch: TokenWatch;
  readonly watches: Watches;
  readonly quotas: Pick<Quotas, 'takeRequest'>;
  readonly clock: WallClock;
}): Method[] {
  const { tokenWatch, watches, quotas, clock } = deps;

  /** Opens a stream, and ends it soon after its token has stopped being right. */
  async function* checked<News>(
    call: Call,
    open: (owner: TokenOwner, signal: AbortSignal) => AsyncIterable<News>,
  ): AsyncGenerator<{ readonly news: News; readonly owner: TokenOwner }, void, undefined> {
    const owner = callerOf(call);
    quotas.takeRequest(owner.account);
    using watched = tokenWatch.watch(call.caller?.token ?? '', owner);
    for await (const news of open(owner, AbortSignal.any([call.signal, watched.signal]))) {
      yield { news, owner: watched.owner };
    }
  }

  return toMethods(WatchService, {
    async *watchCrawlers(request, call) {
      const { nameContains } = request;
      const open = (owner: TokenOwner, signal: AbortSignal) =>
        watches.crawlers(owner, nameContains, signal);
      for await (const { news } of checked(call, open)) {
        const now = news.observedAt;
        yield {
          crawlers: news.changed.map(({ crawler, ...read }) =>
            toCrawlerMessage(crawler, { ...read, now }),
          ),
          removed: [...news.removed],
          isComplete: news.isComplete,
          isPartial: news.isPartial,
          observedAt: timestampFromDate(toWall(clock, now)),
        };
      }
    },

    async *watchCrawler(request, call) {
      const open = (owner: TokenOwner, signal: AbortSignal) =>
        watches.crawler(owner, request.name, signal);
      for await (const { news } of checked(call, open)) {
        const { crawler: row, observedAt: now } = news;
        yield {
          crawler: row && toCrawlerMessage(row.crawler, { ...row, now }),
          crawlTimes: news.times,
          observedAt: timestampFromDate(toWall(clock, now)),
        };
      }
    },

    async *watchActivity(_request, call) {
      const open = (owner: TokenOwner, signal: AbortSignal) => watches.activity(owner, signal);
      for await (const { news, owner } of checked(call, open)) {
        const { activity, observedAt } = news;
        yield {
          activity: activity && toAccountActivityMessage(owner, activity, clock),
          observedAt: timestampFromDate(toWall(clock, observedAt)),
        };
      }
    },
  });
}
