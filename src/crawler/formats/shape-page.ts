import type { CrawlRequest } from '../../domain/job.ts';
import type { Page } from '../crawler.ts';

/** A page in the shape its client asked for; `body` is not compressed, and UTF-8 when `isText`. */
export interface ShapedBody {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/** Shapes a page by the request's parameters. */
export async function shapePage(page: Page, _request: CrawlRequest): Promise<ShapedBody> {
  const { contentType, body, isText } = page;
  return { contentType, body, isText };
}
