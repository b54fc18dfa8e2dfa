import {
  type Crawler,
  CrawlerStatus,
  PausedBy,
  TokenType,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { Moment } from '../../format/moment.tsx';

/** Whether a crawler runs; if not, who paused it, since when and why. */
export function CrawlerStatusBadge({ crawler }: { readonly crawler: Crawler }) {
  if (crawler.status !== CrawlerStatus.PAUSED) {
    const isBusy = Number(crawler.activity?.running ?? 0) > 0;
    return <span class={`badge ${isBusy ? 'ok' : ''}`}>{isBusy ? 'Running' : 'Ready'}</span>;
  }
  const byMonitor = crawler.pausedBy === PausedBy.MONITOR;
  return (
    <span>
      <span class={`badge ${byMonitor ? 'bad' : 'warn'}`} title={crawler.pauseReason}>
        {byMonitor ? 'Callback failing' : 'Paused'}
      </span>{' '}
      <span class="small muted">
        <Moment at={crawler.pausedAt} none="" />
      </span>
    </span>
  );
}

/** What distinguishes crawlers in addition to their names. */
export function crawlerKind(crawler: Crawler): string {
  const engine = crawler.tokenType === TokenType.JAVASCRIPT ? 'browser' : 'plain requests';
  return `${deliveryOf(crawler).label}, ${engine}`;
}
