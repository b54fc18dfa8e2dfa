import { jsonBody } from '../domain/json-body.ts';
import type { CrawlParameters } from '../domain/parameters.ts';
import { extraFields, type FieldSource, resultFields } from './delivery-fields.ts';

/** A page in the shape its client asked for, and what is told with it. */
export interface DeliverySource extends FieldSource {
  readonly format: NonNullable<CrawlParameters['format']>;
  /** Indent the JSON; default false. */
  readonly pretty?: boolean | undefined;
  /** Media type of `body`. */
  readonly contentType: string;
  /** Not compressed; UTF-8 when `isText`. */
  readonly body: Uint8Array;
  readonly isText: boolean;
}

/**
 * The body of a webhook delivery before compression, and its content type. html: the page as `text/plain`; one that is not text keeps its
 * bytes and its own type. md: `text/markdown`. json: `gzip/json`, an object of the status fields, the extras, and the page as
 * `body`: a string, or base64 with `"body_encoding": "base64"` when it is not UTF-8.
 */
export function deliveryBody(source: DeliverySource): {
  readonly contentType: string;
  readonly body: Uint8Array;
} {
  const { format, body, isText } = source;
  if (format === 'json') return { contentType: 'gzip/json', body: envelope(source) };
  if (!isText) return { contentType: source.contentType || 'application/octet-stream', body };
  const type = format === 'md' ? 'text/markdown' : 'text/plain';
  return { contentType: `${type}; charset=utf-8`, body };
}

function envelope(source: DeliverySource): Uint8Array {
  const fields = { ...resultFields(source), ...extraFields(source), ...jsonBody(source.body) };
  return Buffer.from(JSON.stringify(fields, undefined, source.pretty === true ? 2 : undefined));
}
