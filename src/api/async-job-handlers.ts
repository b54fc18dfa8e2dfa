import type { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { AsyncJobs } from '../service/queue/async-jobs.ts';
import { callerOf } from './caller-of.ts';
import { toJobStatus, toRequestInfo } from './crawler-messages.ts';
import type { Implementation } from './method.ts';
import { MAX_PAGE, toListingPart, toPageToken } from './page-token.ts';

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
      const { rows, cursor } = await asyncJobs.list(owner, toListingPart(request, MAX_PAGE));
      return { jobs: rows.map(toRequestInfo), nextPageToken: toPageToken(cursor) };
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
