import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { invalidField } from '../domain/errors.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { CrawlerDetails, CrawlerManagement } from '../service/crawlers/crawlers.ts';
import type { AsyncJobs } from '../service/queue/async-jobs.ts';
import type { JobManagement, ReplaySelector } from '../service/queue/jobs.ts';
import { asyncJobHandlers } from './async-job-handlers.ts';
import { authenticateCall } from './authenticate-call.ts';
import {
  toCrawlerInput,
  toCrawlerMessage,
  toDeliveryMessage,
  toJobStatus,
} from './crawler-messages.ts';
import { type Method, toMethods } from './method.ts';
import { nextPageToken, toPage } from './page-token.ts';

/** The methods of the crawler service. */
export function crawlerHandlers(deps: {
  readonly authenticator: Authenticator;
  readonly crawlers: CrawlerManagement;
  readonly jobs: JobManagement;
  readonly asyncJobs: AsyncJobs;
}): Method[] {
  const { authenticator, crawlers, jobs } = deps;
  const toMessage = ({ crawler, counters }: CrawlerDetails) => toCrawlerMessage(crawler, counters);

  return toMethods(CrawlerService, {
    ...asyncJobHandlers(deps),
    async createCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const made = await crawlers.create(owner, request.name, toCrawlerInput(request));
      const secret = made.created ? made.crawler.webhookSecrets[0]?.secret : undefined;
      const shown = secret === undefined ? {} : { webhookSecret: secret };
      return { crawler: { ...toMessage(made), ...shown }, created: made.created };
    },
    async listCrawlers(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const { limit, after } = toPage(request);
      const found = await crawlers.list(owner, limit, after);
      return {
        crawlers: found.map((crawler) => toCrawlerMessage(crawler)),
        nextPageToken: nextPageToken(found, limit),
      };
    },
    async getCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return { crawler: toMessage(await crawlers.details(owner, request.name)) };
    },
    async updateCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const updated = await crawlers.update(owner, request.name, toCrawlerInput(request));
      return { crawler: toMessage(updated) };
    },
    async pauseCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return { crawler: toMessage(await crawlers.pause(owner, request.name)) };
    },
    async unpauseCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return { crawler: toMessage(await crawlers.unpause(owner, request.name)) };
    },
    async purgeCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return { purged: BigInt(await crawlers.purge(owner, request.name)) };
    },
    async deleteCrawler(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return { purged: BigInt(await crawlers.remove(owner, request.name)) };
    },
    async deleteJob(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      await jobs.remove(owner, request.name, request.rid);
      return { rid: request.rid };
    },
    async findJob(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const { rid } = request;
      return toJobStatus(rid, await jobs.find(owner, request.name, rid));
    },
    async rotateWebhookSecret(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const { secret, previousUntil } = await crawlers.rotateSecret(owner, request.name);
      return { webhookSecret: secret, previousValidUntil: timestampFromDate(previousUntil) };
    },
    async getDelivery(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      return {
        delivery: toDeliveryMessage(await jobs.delivery(owner, request.name, request.rid)),
      };
    },
    async replayDeliveries(request, call) {
      const owner = await authenticateCall(authenticator, request, call);
      const { rid, from, to } = request;
      return {
        replayed: BigInt(await jobs.replay(owner, request.name, toReplaySelector(rid, from, to))),
      };
    },
  });
}

type Moment = Parameters<typeof timestampDate>[0] | undefined;

function toReplaySelector(rid: string, from: Moment, to: Moment): ReplaySelector {
  if (rid !== '') {
    if (from === undefined && to === undefined) return { rid };
    throw invalidField('rid', 'Give a rid or a time range, not both.');
  }
  if (from === undefined) throw invalidField('from', 'Give a rid, or from (and to).');
  return { from: timestampDate(from), to: to === undefined ? undefined : timestampDate(to) };
}
