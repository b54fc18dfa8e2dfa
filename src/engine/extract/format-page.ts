import type { CrawlParameters } from '../../domain/parameters.ts';
import type { Page } from '../engine.ts';

/** A page in the shape its client asked for; `body` is not compressed, and UTF-8 when `isText`. */
export interface FormattedPage {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/**
 * What reading a document came to. `failed` is for the client, `cause` for the log: where the
 * reader threw.
 */
export type DocumentAnswer =
  | { readonly text: string }
  | { readonly failed: string; readonly cause?: string | undefined };

/** What a client is told of a page that broke its reader. */
export const UNREADABLE = 'the page could not be read';

/** A longer document is delivered as it is: its tree would take a hundred times its size. */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * What has to be read in a page's document: `md`, `readable_md`, `autoparse` or the name of a
 * scraper; undefined when the page is delivered as it is. Documents are read of HTML pages that
 * were crawled well.
 */
export function documentWorkOf(page: Page, parameters: CrawlParameters): string | undefined {
  const isHtml = /^(text\/html|application\/xhtml\+xml)/i.test(page.contentType);
  if (!page.isText || !isHtml || page.failure !== undefined) return undefined;
  if (parameters.scraper !== undefined) return parameters.scraper;
  if (parameters.autoparse === true) return 'autoparse';
  if (parameters.format !== 'md') return undefined;
  return parameters.md_readability === true ? 'readable_md' : 'md';
}

/**
 * The page as it is delivered. A scraper that failed gives `{"error": ...}`, Markdown that failed
 * the page itself.
 */
export function formatPage(
  page: Page,
  parameters: CrawlParameters,
  document: DocumentAnswer | undefined,
): FormattedPage {
  const { contentType, body, isText } = page;
  const work = documentWorkOf(page, parameters);
  const asItIs = { contentType, body, isText };
  if (work === undefined || document === undefined) return asItIs;
  const structured = work !== 'md' && work !== 'readable_md';
  if ('failed' in document) {
    return structured ? textBody(JSON_TYPE, JSON.stringify({ error: document.failed })) : asItIs;
  }
  return textBody(structured ? JSON_TYPE : 'text/markdown; charset=utf-8', document.text);
}

function textBody(contentType: string, text: string): FormattedPage {
  return { contentType, body: Buffer.from(text), isText: true };
}
