import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  CrawlerOrder,
  type ListCrawlersRequest,
  type ListCrawlersResponseSchema,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import type { CrawlerManagement } from '../service/crawlers/crawlers.ts';
import type { CrawlerOrder as DomainOrder, ListCrawlers } from '../service/reads/crawler-list.ts';
import { nameOnWire, toCrawlerMessage, toWantedStatus } from './crawler-messages.ts';
import { nextPageToken, toPage, toPageToken } from './page-token.ts';

const ORDERS: Readonly<Record<DomainOrder, CrawlerOrder>> = {
  name: CrawlerOrder.NAME,
  waiting: CrawlerOrder.WAITING,
  running: CrawlerOrder.RUNNING,
  retrying: CrawlerOrder.RETRYING,
  completed: CrawlerOrder.COMPLETED,
  failed: CrawlerOrder.FAILED,
  deliveriesPending: CrawlerOrder.DELIVERIES_PENDING,
  rate: CrawlerOrder.RATE,
  lastPush: CrawlerOrder.LAST_PUSH,
  lastCrawl: CrawlerOrder.LAST_CRAWL,
  created: CrawlerOrder.CREATED,
};

/** Answers ListCrawlers: what asks for names and settings only reads no more than its page. */
export function createCrawlerLists(deps: {
  readonly crawlers: Pick<CrawlerManagement, 'list'>;
  readonly listCrawlers: ListCrawlers;
  readonly clock: Clock;
}) {
  return async (
    owner: TokenOwner,
    request: ListCrawlersRequest,
  ): Promise<MessageInitShape<typeof ListCrawlersResponseSchema>> => {
    const { limit, after } = toPage(request);
    const { nameContains, descending, withActivity, needsAttention } = request;
    const status = toWantedStatus(request.status);
    const order = nameOnWire(ORDERS, request.orderBy) ?? 'name';
    const isPlain = nameContains === '' && status === undefined && order === 'name' && !descending;
    if (isPlain && !withActivity && !needsAttention) {
      const found = await deps.crawlers.list(owner, limit, after);
      return {
        crawlers: found.map((crawler) => toCrawlerMessage(crawler)),
        nextPageToken: nextPageToken(found, limit),
      };
    }
    const page = await deps.listCrawlers(owner, {
      nameContains,
      status,
      needsAttention,
      order,
      descending,
      limit,
      cursor: after,
    });
    const now = deps.clock.now();
    return {
      crawlers: page.crawlers.map(({ crawler, ...read }) =>
        toCrawlerMessage(crawler, withActivity ? { ...read, now } : undefined),
      ),
      nextPageToken: toPageToken(page.cursor),
      total: page.total,
      isPartial: page.isPartial,
    };
  };
}
