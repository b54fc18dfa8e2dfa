import type { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { invalidPageToken } from '../domain/errors.ts';
import type { AsyncJobs } from '../service/queue/async-jobs.ts';
import { callerOf } from './caller-of.ts';
import { toJobStatus, toRequestInfo } from './crawler-messages.ts';
import type { Implementation } from './method.ts';
import { nextPageToken, toPage } from './page-token.ts';

/** The methods of the crawler service that concern `async=true` crawls. */
export function asyncJobHandlers(deps: {
  readonly asyncJobs: AsyncJobs;
}): Pick<
  Implementation<typeof CrawlerService>,
  'listAsyncJobs' | 'findAsyncJob' | 'deleteAsyncJob' | 'purgeAsyncJobs'
> {
  const { asyncJobs } = deps;
  return {
    async listAsyncJobs(request, call) {
      const owner = callerOf(call);
      const { limit, after } = toPage(request);
      const found = await asyncJobs.list(owner, limit, toPlace(after));
      const places = found.map(({ dueAt, rid }) => ({ name: `${dueAt.getTime()}.${rid}` }));
      return {
        jobs: found.map(toRequestInfo),
        nextPageToken: nextPageToken(places, limit),
      };
    },
    async findAsyncJob(request, call) {
      const owner = callerOf(call);
      return toJobStatus(request.rid, await asyncJobs.find(owner, request.rid));
    },
    async deleteAsyncJob(request, call) {
      const owner = callerOf(call);
      await asyncJobs.remove(owner, request.rid);
      return { rid: request.rid };
    },
    async purgeAsyncJobs(_request, call) {
      const owner = callerOf(call);
      return { purged: BigInt(await asyncJobs.purge(owner)) };
    },
  };
}

function toPlace(text: string): Parameters<AsyncJobs['list']>[2] {
  if (text === '') return undefined;
  const [, due, rid] = /^(\d{1,15})\.([0-9a-f]{24})$/.exec(text) ?? [];
  if (due === undefined || rid === undefined) {
    throw invalidPageToken();
  }
  return { dueAt: new Date(Number(due)), rid };
}
