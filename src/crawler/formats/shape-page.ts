import type { CrawlRequest } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import type { Page } from '../crawler.ts';
import type { DocumentWorkshop } from './document-workshop.ts';

/** A page in the shape its client asked for; `body` is not compressed, and UTF-8 when `isText`. */
export interface ShapedBody {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/** Shapes pages by their request's parameters. */
export type PageShaper = (page: Page, request: CrawlRequest) => Promise<ShapedBody>;

// A longer document is delivered as it is: its tree would take a hundred times its size.
const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Makes the shaper. Markdown and structured data are made of HTML pages that were crawled well; everything else stays as it is. A
 * scraper that fails gives `{"error": ...}`, Markdown that fails the page itself.
 */
export function createPageShaper(workshop: Pick<DocumentWorkshop, 'read'>): PageShaper {
  return async (page, { parameters }) => {
    const { contentType, body, isText } = page;
    const asItIs = { contentType, body, isText };
    const work = workOf(parameters);
    const isHtml = /^(text\/html|application\/xhtml\+xml)/i.test(contentType);
    if (work === undefined || !isText || !isHtml || page.failure !== undefined) return asItIs;
    const structured = work !== 'md' && work !== 'readable_md';
    const answer =
      body.byteLength > MAX_DOCUMENT_BYTES
        ? { failed: `the page is longer than ${MAX_DOCUMENT_BYTES} bytes` }
        : await workshop.read({ html: Buffer.from(body).toString(), url: page.url, work });
    if ('failed' in answer) {
      return structured ? textBody(JSON_TYPE, JSON.stringify({ error: answer.failed })) : asItIs;
    }
    return textBody(structured ? JSON_TYPE : 'text/markdown; charset=utf-8', answer.text);
  };
}

function workOf(parameters: CrawlParameters): string | undefined {
  if (parameters.scraper !== undefined) return parameters.scraper;
  if (parameters.autoparse === true) return 'autoparse';
  if (parameters.format !== 'md') return undefined;
  return parameters.md_readability === true ? 'readable_md' : 'md';
}

function textBody(contentType: string, text: string): ShapedBody {
  return { contentType, body: Buffer.from(text), isText: true };
}
