import {
  type Crawler,
  CrawlerStatus,
  PausedBy,
  TokenType,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { Moment } from '../../format/moment.tsx';
import { AttentionBadge, isAttention } from './attention.tsx';

/** What trouble a crawler has, or whether it runs; if not, since when. */
export function CrawlerStatusBadge({ crawler }: { readonly crawler: Crawler }) {
  if (isAttention(crawler) && crawler.pausedBy !== PausedBy.USER) {
    return <AttentionBadge crawler={crawler} />;
  }
  if (crawler.status !== CrawlerStatus.PAUSED) {
    const isBusy = Number(crawler.activity?.running ?? 0) > 0;
    return <span class={`badge ${isBusy ? 'ok' : ''}`}>{isBusy ? 'Running' : 'Ready'}</span>;
  }
  return (
    <span>
      <span class="badge warn">Paused</span>{' '}
      <span class="small muted">
        <Moment at={crawler.pausedAt} none="" />
      </span>{' '}
      <AttentionBadge crawler={crawler} />
    </span>
  );
}

/** What distinguishes crawlers in addition to their names. */
export function crawlerKind(crawler: Crawler): string {
  const engine = crawler.tokenType === TokenType.JAVASCRIPT ? 'browser' : 'plain';
  return `${deliveryOf(crawler).label}, ${engine}`;
}
