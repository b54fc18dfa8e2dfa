import type { DeliveryMode } from '../domain/crawler.ts';
import { discard } from '../domain/discard.ts';
import type { CrawlRequest, CrawlStatus } from '../domain/job.ts';
import { structuredBody } from '../domain/json-body.ts';
import type { CrawlParameters } from '../domain/parameters.ts';
import type { CrawlFailure, Page } from '../engine/engine.ts';
import {
  type DocumentAnswer,
  documentWorkOf,
  type FormattedPage,
  formatPage,
} from '../engine/extract/format-page.ts';
import { deliveryBody } from '../webhook/delivery-body.ts';
import { extraFields, type FieldSource, resultFields } from '../webhook/delivery-fields.ts';
import { compress } from './compress.ts';

/** What is made of a page: the answer to an inline crawl, or the record of a job. */
export type ResultSpec =
  | {
      readonly kind: 'inline';
      /** Set when a copy is kept in storage. */
      readonly rid: string | undefined;
    }
  | { readonly kind: 'record'; readonly rid: string; readonly delivery: DeliveryMode };

/** A crawled page in the shape its client asked for. */
export interface CrawlResult extends CrawlStatus {
  /** Absent when the crawl ended well. */
  readonly failure?: CrawlFailure;
  /** Media type of `body`. */
  readonly contentType: string;
  readonly isText: boolean;
  /** `failure` when there is one; `screenshot_url` or `screenshot_failed`, and `original_*`, as asked for. */
  readonly extras: Readonly<Record<string, string>>;
  /** Not compressed; empty unless the spec is `inline`. */
  readonly body: Uint8Array;
  /** What is stored or delivered, gzip; empty when nothing is. */
  readonly packed: Uint8Array;
  /** Media type of what is in `packed`. */
  readonly packedType: string;
}

const NOTHING = new Uint8Array(0);

/**
 * Builds a result. `document` is what reading the page's document came to, for pages that {@link needsDocument}; `more` are extras that
 * are known already.
 */
export async function buildResult(
  page: Page,
  request: CrawlRequest,
  spec: ResultSpec,
  document?: DocumentAnswer,
  more: Readonly<Record<string, string>> = {},
): Promise<CrawlResult> {
  const { parameters } = request;
  const extras = { ...extrasOf(page, request), ...more };
  const formatted = formatPage(page, parameters, document);
  const { cbStatus, originalStatus, url, failure } = page;
  const status = { cbStatus, originalStatus, url };
  const result = {
    ...status,
    ...formatted,
    ...(failure === undefined ? {} : { failure }),
    extras,
  };
  const { kind, rid } = spec;
  if (rid === undefined) return { ...result, packed: NOTHING, packedType: '' };
  const known = { ...status, rid, pushedUrl: request.url, extras };
  const { format = 'html', pretty } = parameters;
  const content =
    kind === 'inline' || spec.delivery === 'storage'
      ? storedContent(formatted, known, parameters)
      : deliveryBody({ ...formatted, ...known, format, pretty });
  const packed = await compress(content.body);
  if (content.body !== formatted.body) discard(content.body);
  return {
    ...result,
    ...(kind === 'inline' ? {} : { body: NOTHING }),
    packed,
    packedType: content.contentType,
  };
}

/**
 * What storage keeps of a page: the page itself, or with `scraper` or `autoparse` an envelope whose `body` is the data, which is what
 * readers of stored results expect.
 */
function storedContent(
  formatted: FormattedPage,
  known: FieldSource,
  { scraper, autoparse }: CrawlParameters,
): Pick<FormattedPage, 'contentType' | 'body'> {
  if (scraper === undefined && autoparse !== true) return formatted;
  const envelope = {
    ...resultFields(known),
    ...extraFields(known),
    ...structuredBody(formatted.body),
  };
  return {
    contentType: 'application/json; charset=utf-8',
    body: Buffer.from(JSON.stringify(envelope)),
  };
}

/** Whether the page's document has to be read for its result: Markdown, or structured data, of an HTML page. */
export function needsDocument(page: Page, request: CrawlRequest): boolean {
  return documentWorkOf(page, request.parameters) !== undefined;
}

function extrasOf(page: Page, { parameters }: CrawlRequest): Record<string, string> {
  const extras: Record<string, string> = {};
  if (page.failure !== undefined) extras.failure = page.failure.reason;
  if (page.screenshotFailed !== undefined) extras.screenshot_failed = page.screenshotFailed;
  if (parameters.get_headers === true) {
    for (const [name, value] of page.headers) {
      if (name !== 'set-cookie') extras[`original_${name.replaceAll('-', '_')}`] = value;
    }
  }
  if (parameters.get_cookies === true) {
    const cookies = page.headers.filter(([name]) => name === 'set-cookie');
    extras.original_set_cookie = cookies.map(([, value]) => value).join('; ');
  }
  return extras;
}
