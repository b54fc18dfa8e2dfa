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
      return toJobStatus(request.rid, await asyncJobs.find(callerOf(call), request.rid));
    },
    async deleteAsyncJob(request, call) {
      await asyncJobs.remove(callerOf(call), request.rid);
      return { rid: request.rid };
    },
    async purgeAsyncJobs(_request, call) {
      return { purged: BigInt(await asyncJobs.purge(callerOf(call))) };
    },
  };
}
