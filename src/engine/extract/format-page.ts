import type { ScraperName } from '../../domain/parameter-table.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import type { Page } from '../engine.ts';

/**
 * A page in the format that its client asked for. `body` is not compressed, and UTF-8 when
 * `isText`.
 */
export interface FormattedPage {
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/**
 * The output for a document, or the reason why it failed. `failed` is for the client; `cause`,
 * where the code threw, for the log.
 */
export type DocumentOutput =
  | { readonly text: string }
  | { readonly failed: string; readonly cause?: string | undefined };

/** The client's message when the code that reads a page threw. */
export const UNREADABLE = 'the page could not be read';

/**
 * A longer document is delivered as it is, because its tree would take a hundred times its size.
 */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;

const JSON_TYPE = 'application/json; charset=utf-8';

/** The parts of a page that are read for its document. */
export type ReadablePage = Pick<Page, 'body' | 'contentType' | 'isText' | 'url' | 'failure'>;

/** What the document of a page is parsed for. */
export type DocumentWork = 'md' | 'readable_md' | 'autoparse' | ScraperName;

/** Whether pages of this type are HTML. */
export function isHtml(contentType: string): boolean {
  return /^(text\/html|application\/xhtml\+xml)/i.test(contentType);
}

/**
 * What the document of a page must be parsed for. Undefined when the page is delivered as it is,
 * which includes failed pages and pages other than HTML.
 */
export function documentWork(
  page: Omit<ReadablePage, 'body' | 'url'>,
  parameters: CrawlParameters,
): DocumentWork | undefined {
  if (!page.isText || !isHtml(page.contentType) || page.failure !== undefined) return undefined;
  if (parameters.scraper !== undefined) return parameters.scraper;
  if (parameters.autoparse === true) return 'autoparse';
  if (parameters.format !== 'md') return undefined;
  return parameters.md_readability === true ? 'readable_md' : 'md';
}

/**
 * The page as it is delivered. A scraper that failed results in `{"error": ...}`, Markdown that
 * failed in the page itself.
 */
export function formatPage(
  page: Page,
  parameters: CrawlParameters,
  document: DocumentOutput | undefined,
): FormattedPage {
  const { contentType, body, isText } = page;
  const work = documentWork(page, parameters);
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
