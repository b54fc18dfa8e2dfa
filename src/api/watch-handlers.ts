import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { toWall, type WallClock } from '../domain/clock.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { Watches } from '../service/watches/watches.ts';
import { callerOf } from './caller-of.ts';
import { toCrawlerMessage } from './crawler-messages.ts';
import { toAccountActivityMessage } from './listing-messages.ts';
import { type Method, toMethods } from './method.ts';
import { whileAuthenticated } from './while-authenticated.ts';

/** The methods of the watch service. Opening a stream counts as a call of the account. */
export function watchHandlers(deps: {
  readonly tokenWatch: TokenWatch;
  readonly watches: Watches;
  readonly quotas: Pick<Quotas, 'takeRequest'>;
  readonly clock: WallClock;
}): Method[] {
  const { tokenWatch, watches, quotas, clock } = deps;

  return toMethods(WatchService, {
    async *watchCrawlers(request, call) {
      const owner = callerOf(call);
      quotas.takeRequest(owner.account);
      const open = (signal: AbortSignal) => watches.crawlers(owner, request.nameContains, signal);
      for await (const news of whileAuthenticated(tokenWatch, call, open)) {
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
      const owner = callerOf(call);
      quotas.takeRequest(owner.account);
      const open = (signal: AbortSignal) => watches.crawler(owner, request.name, signal);
      for await (const news of whileAuthenticated(tokenWatch, call, open)) {
        const { crawler: row, observedAt: now } = news;
        yield {
          crawler: row && toCrawlerMessage(row.crawler, { ...row, now }),
          crawlTimes: news.times,
          observedAt: timestampFromDate(toWall(clock, now)),
        };
      }
    },

    async *watchActivity(_request, call) {
      const owner = callerOf(call);
      quotas.takeRequest(owner.account);
      yield* whileAuthenticated(tokenWatch, call, async function* open(signal, watched) {
        for await (const { activity, observedAt } of watches.activity(owner, signal)) {
          yield {
            activity: activity && toAccountActivityMessage(watched.owner, activity, clock),
            observedAt: timestampFromDate(toWall(clock, observedAt)),
          };
        }
      });
    },
  });
}
