import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { type WallClock } from '../domain/clock.ts';
import { defined } from '../domain/defined.ts';
import type { AuditTrail } from '../service/accounts/audit-trail.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { ActOnMatches } from '../service/batches/act-on-matches.ts';
import type { AccountActivities } from '../service/reads/account-activity.ts';
import type { ListFailures } from '../service/reads/failures.ts';
import type { Listings } from '../service/reads/listings.ts';
import type { Search } from '../service/reads/search.ts';
import { toAuditFilter, toAuditMessage } from './audit-messages.ts';
import { callerOf } from './caller-of.ts';
import { toDeliveryMessage, toDeliveryState } from './delivery-messages.ts';
import { toLifeMessage } from './life-messages.ts';
import {
  toAccountActivityMessage,
  toCrawlOutcome,
  toFailureGroupMessage,
  toFailureKind,
  toJobMessage,
  toQueuedState,
  toResultMessage,
} from './listing-messages.ts';
import { toMatchFilter, toMatchRequest } from './match-messages.ts';
import { type Method, toMethods } from './method.ts';
import { toListingPart, toPageToken } from './page-token.ts';
import { noteChange } from './record-changes.ts';
import { whileAuthenticated } from './while-authenticated.ts';

/** The methods of the activity service. */
export function activityHandlers(deps: {
  readonly listings: Listings;
  readonly listFailures: ListFailures;
  readonly activities: AccountActivities;
  readonly tokenWatch: TokenWatch;
  readonly actOnMatches: ActOnMatches;
  readonly search: Search;
  readonly auditTrail: Pick<AuditTrail, 'list' | 'note'>;
  readonly clock: WallClock;
}): Method[] {
  const { listings, activities } = deps;
  return toMethods(ActivityService, {
    async *actOnMatches(request, call) {
      const owner = callerOf(call);
      const asked = toMatchRequest(request);
      let last: Readonly<Record<string, number>> | undefined;
      try {
        const open = (signal: AbortSignal) => deps.actOnMatches(owner, request.name, asked, signal);
        for await (const progress of whileAuthenticated(deps.tokenWatch, call, open)) {
          const { cursor, ...counts } = progress;
          last = counts;
          yield { ...counts, nextPageToken: toPageToken(cursor) };
        }
      } finally {
        if (!asked.isEstimate && last !== undefined)
          noteChange(deps.auditTrail, ActivityService.method.actOnMatches, request, call, last);
      }
    },

    async listJobs(request, call) {
      const { rows, cursor } = await listings.jobs(
        callerOf(call),
        request.name,
        toQueuedState('state', request.state),
        toListingPart(request),
        toMatchFilter(request.filter),
      );
      return { jobs: rows.map(toJobMessage), nextPageToken: toPageToken(cursor) };
    },

    async listResults(request, call) {
      const { rows, cursor } = await listings.results(
        callerOf(call),
        request.name,
        toCrawlOutcome(request.outcome),
        toListingPart(request),
        toMatchFilter(request.filter),
      );
      return { results: rows.map(toResultMessage), nextPageToken: toPageToken(cursor) };
    },

    async listDeliveries(request, call) {
      const { rows, cursor } = await listings.deliveries(
        callerOf(call),
        request.name,
        defined({
          state: toDeliveryState(request.state),
          outcome: toCrawlOutcome(request.outcome),
          matches: toMatchFilter(request.filter),
        }),
        toListingPart(request),
      );
      return { deliveries: rows.map(toDeliveryMessage), nextPageToken: toPageToken(cursor) };
    },

    async listFailures(request, call) {
      const { groups, examined, hasMore } = await deps.listFailures(
        callerOf(call),
        request.name,
        toFailureKind(request.kind),
      );
      return { groups: groups.map(toFailureGroupMessage), examined, hasMore };
    },

    async findRid(request, call) {
      const found = await listings.find(callerOf(call), request.rid);
      const { crawler, job, result, delivery } = found;
      return {
        rid: request.rid,
        crawler: crawler?.name ?? '',
        ...toLifeMessage(found.life),
        job: job && toJobMessage(job),
        result: result && toResultMessage(result),
        delivery: delivery && toDeliveryMessage(delivery),
      };
    },

    async search(request, call) {
      const found = await deps.search(callerOf(call), request.query, call.signal);
      const hits = found.hits.map(({ at, ...hit }) => ({ ...hit, at: timestampFromDate(at) }));
      return { ...found, crawlers: [...found.crawlers], hits };
    },

    async listAuditRecords(request, call) {
      const owner = callerOf(call);
      const filter = toAuditFilter(request);
      const { rows, cursor } = await deps.auditTrail.list(owner, filter, toListingPart(request));
      return { records: rows.map(toAuditMessage), nextPageToken: toPageToken(cursor) };
    },

    async getActivity(_request, call) {
      const owner = callerOf(call);
      return {
        activity: toAccountActivityMessage(owner, await activities.read(owner), deps.clock),
      };
    },
  });
}
