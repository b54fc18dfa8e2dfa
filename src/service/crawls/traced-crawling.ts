import { noTracing, type Tracing } from '../../domain/tracing.ts';
import type { CrawlOrder } from '../../threads/crawl-threads.ts';
import { type Crawling, isBrowsed } from './crawling.ts';

/** Traces each crawl as an HTTP request to its target. */
export function tracedCrawling(crawling: Crawling, tracing: Tracing): Crawling {
  if (tracing === noTracing) return crawling;
  return {
    ...crawling,
    async crawl(order, signal) {
      const { request } = order.task;
      const url = URL.parse(request.url);
      const span = tracing.start({
        name: request.method,
        kind: 'client',
        parent: order.traceparent,
        attributes: {
          'http.request.method': request.method,
          'url.scheme': url?.protocol.slice(0, -1) ?? '',
          'server.address': url?.hostname ?? '',
          'queued_crawler.engine': isBrowsed(order.task) ? 'browser' : 'http',
          ...rungAttribute(order.spec),
        },
      });
      try {
        const crawled = await crawling.crawl(order, signal);
        const { originalStatus, cbStatus, failure } = crawled.result;
        const answered =
          originalStatus === 0 ? {} : { 'http.response.status_code': originalStatus };
        span.end({ ...answered, 'queued_crawler.cb_status': cbStatus }, failure?.reason);
        return crawled;
      } catch (error) {
        span.end({}, error instanceof Error ? error.name : 'aborted');
        throw error;
      }
    },
  };
}

function rungAttribute(spec: CrawlOrder['spec']): Record<string, string> {
  return spec.kind === 'record' && spec.rung !== undefined
    ? { 'queued_crawler.rung': spec.rung }
    : {};
}
