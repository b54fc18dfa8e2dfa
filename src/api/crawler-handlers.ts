import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  CrawlerService,
  type ReplayDeliveriesRequest,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { Clock } from '../domain/clock.ts';
import { invalidField } from '../domain/errors.ts';
import { integerInRange } from '../domain/limits.ts';
import type { CrawlerDetails, CrawlerManagement } from '../service/crawlers/crawlers.ts';
import type { TestDelivery } from '../service/deliveries/test-delivery.ts';
import type { AsyncJobs } from '../service/queue/async-jobs.ts';
import type { JobManagement, ReplaySelector } from '../service/queue/jobs.ts';
import type { ListCrawlers } from '../service/reads/crawler-list.ts';
import { callerOf } from './caller-of.ts';
import {
  toCrawlerInput,
  toCrawlerMessage,
  toJobStatus,
  toRequestInfo,
} from './crawler-messages.ts';
import { toAttemptMessage, toDeliveryMessage, toDeliveryState } from './delivery-messages.ts';
import { createCrawlerLists } from './list-crawlers.ts';
import { type Method, toMethods } from './method.ts';
import { fromPageToken, MAX_PAGE, toListingPart, toPageToken } from './page-token.ts';
import { toDate, toRange } from './to-date.ts';

/** The methods of the crawler service. */
export function crawlerHandlers(deps: {
  readonly crawlers: CrawlerManagement;
  readonly jobs: JobManagement;
  readonly asyncJobs: AsyncJobs;
  readonly listCrawlers: ListCrawlers;
  readonly testDelivery: TestDelivery;
  readonly clock: Clock;
}): Method[] {
  const { crawlers, jobs, asyncJobs, clock } = deps;
  const listCrawlers = createCrawlerLists(deps);
  const toMessage = ({ crawler, ...read }: CrawlerDetails) =>
    toCrawlerMessage(crawler, { ...read, now: clock.now() });

  return toMethods(CrawlerService, {
    async createCrawler(request, call) {
      const made = await crawlers.create(callerOf(call), request.name, toCrawlerInput(request));
      const secret = made.created ? made.crawler.webhookSecrets[0]?.secret : undefined;
      const shown = secret === undefined ? {} : { webhookSecret: secret };
      return { crawler: { ...toMessage(made), ...shown }, created: made.created };
    },
    async listCrawlers(request, call) {
      return listCrawlers(callerOf(call), request);
    },
    async getCrawler(request, call) {
      return { crawler: toMessage(await crawlers.details(callerOf(call), request.name)) };
    },
    async updateCrawler(request, call) {
      const { name, etag } = request;
      const updated = await crawlers.update(callerOf(call), name, toCrawlerInput(request), etag);
      return { crawler: toMessage(updated) };
    },
    async pauseCrawler(request, call) {
      return { crawler: toMessage(await crawlers.pause(callerOf(call), request.name)) };
    },
    async unpauseCrawler(request, call) {
      return { crawler: toMessage(await crawlers.unpause(callerOf(call), request.name)) };
    },
    async purgeCrawler(request, call) {
      return { purged: BigInt(await crawlers.purge(callerOf(call), request.name)) };
    },
    async deleteCrawler(request, call) {
      return { purged: BigInt(await crawlers.remove(callerOf(call), request.name)) };
    },
    async deleteJob(request, call) {
      await jobs.remove(callerOf(call), request.name, request.rid);
      return { rid: request.rid };
    },
    async findJob(request, call) {
      const { rid } = request;
      return toJobStatus(rid, await jobs.find(callerOf(call), request.name, rid));
    },
    async rotateWebhookSecret(request, call) {
      const { secret, previousUntil } = await crawlers.rotateSecret(callerOf(call), request.name);
      return { webhookSecret: secret, previousValidUntil: timestampFromDate(previousUntil) };
    },
    async getDelivery(request, call) {
      return {
        delivery: toDeliveryMessage(await jobs.delivery(callerOf(call), request.name, request.rid)),
      };
    },
    async replayDeliveries(request, call) {
      const replayed = await jobs.replay(callerOf(call), request.name, toReplaySelector(request));
      return {
        replayed: BigInt(replayed.count),
        nextPageToken: toPageToken(replayed.cursor),
      };
    },
    async testDelivery(request, call) {
      const owner = callerOf(call);
      const { acknowledged, log } = await deps.testDelivery(owner, request.name, call.signal);
      return { acknowledged, attempt: toAttemptMessage(log) };
    },
    async listAsyncJobs(request, call) {
      const owner = callerOf(call);
      const { rows, cursor } = await asyncJobs.list(owner, toListingPart(request, MAX_PAGE));
      return { jobs: rows.map(toRequestInfo), nextPageToken: toPageToken(cursor) };
    },
    async findAsyncJob(request, call) {
      return toJobStatus(request.rid, await asyncJobs.find(callerOf(call), request.rid));
    },
    async deleteAsyncJob(request, call) {
      await asyncJobs.remove(callerOf(call), request.rid);
      return { rid: request.rid };
    },
    async purgeAsyncJobs(_request, call) {
      return { purged: BigInt(await asyncJobs.purge(callerOf(call))) };
    },
  });
}

function toReplaySelector(request: ReplayDeliveriesRequest): ReplaySelector {
  const { rid, rids, from, to, maxCount } = request;
  const state = toDeliveryState(request.state);
  const hasRange = from !== undefined || to !== undefined;
  if (rid !== '' || rids.length > 0) {
    if (hasRange || (rid !== '' && rids.length > 0)) {
      throw invalidField('rid', 'Give a rid, rids or a time range, only one of them.');
    }
    return rid === '' ? { rids } : { rid };
  }
  if (from === undefined) throw invalidField('from', 'Give a rid, rids, or from (and to).');
  const cursor = fromPageToken(request.pageToken);
  return {
    from: toDate('from', from),
    to: toRange({ from, to }).to,
    state,
    maxCount: maxCount === 0 ? undefined : integerInRange('max_count', maxCount, 1, MAX_REPLAYED),
    cursor: cursor === '' ? undefined : cursor,
  };
}

/** Most deliveries that a replay of a part of a range makes due. */
const MAX_REPLAYED = 1_000;
