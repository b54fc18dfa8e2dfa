import type { CrawlParameters } from '../domain/parameters.ts';
import type { ResultDetails } from '../domain/result.ts';
import { type Content, type ReportedResult, resultFields } from '../domain/result-fields.ts';

/** A formatted page and what is reported with it. */
export interface DeliverySource extends ReportedResult {
  readonly details: ResultDetails;
  readonly format: NonNullable<CrawlParameters['format']>;
  /** Indents the JSON; default false. */
  readonly pretty?: boolean | undefined;
  /** Media type of `body`. */
  readonly contentType: string;
  /** Not compressed; UTF-8 when `isText`. */
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/**
 * The body of a webhook delivery before compression, and its content type. With `html` it is the
 * page as `text/plain`; a page that is not text keeps its bytes and its own type. With `md` it is
 * `text/markdown`. With `json` it is `gzip/json`, an object of the result's fields and the page as
 * `body`. The page is a string, or base64 with `"body_encoding": "base64"` when it is not UTF-8.
 */
export function deliveryBody(source: DeliverySource): Content {
  const { format, body, isText, pretty } = source;
  if (format === 'json') {
    const fields = resultFields(source, source.details);
    return { contentType: 'gzip/json', body, envelope: { fields, of: 'page', pretty } };
  }
  if (!isText) return { contentType: source.contentType || 'application/octet-stream', body };
  const type = format === 'md' ? 'text/markdown' : 'text/plain';
  return { contentType: `${type}; charset=utf-8`, body };
}
