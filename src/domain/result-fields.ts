import { isUtf8 } from 'node:buffer';
import type { CrawlStatus, ResultDetails } from './result.ts';

/** A result's fields beside its page, by their names on the wire; an undefined one is left out. */
export type ResultFields = Readonly<Record<string, string | number | undefined>>;

/** A result whose fields are reported: of an inline crawl, stored or delivered. */
export interface ReportedResult extends CrawlStatus {
  /** Undefined for an inline crawl that is not stored. */
  readonly rid?: string | undefined;
  /** The URL as it was pushed. */
  readonly pushedUrl: string;
}

/** Names that HTTP can carry as part of a header name, proxies included. */
const PORTABLE_NAME = /^[\w.]+$/;

/**
 * The fields of a result as JSON envelopes and headers name them. The status has its older name
 * `pc_status` too. `more` are fields of the reply itself. A header of the target becomes
 * `original_<name>`, unless HTTP cannot carry that name or it would replace a field of the service,
 * as a header named `status` would.
 */
export function resultFields(
  result: ReportedResult,
  details: ResultDetails,
  more: ResultFields = {},
): ResultFields {
  const fields: Record<string, string | number | undefined> = {
    original_status: result.originalStatus,
    pc_status: result.cbStatus,
    cb_status: result.cbStatus,
    url: result.url,
    pushed_url: result.pushedUrl,
    rid: result.rid,
    screenshot_url: details.screenshotUrl,
    screenshot_failed: details.screenshotFailed,
    failure: details.failure,
    ...more,
  };
  for (const [name, value] of Object.entries(details.originalHeaders ?? {})) {
    const field = `original_${name}`;
    if (PORTABLE_NAME.test(name) && !(field in fields)) fields[field] = value;
  }
  return fields;
}

/** The page as members of a JSON envelope. */
interface EnvelopeBody {
  readonly body: unknown;
  readonly body_encoding?: 'base64';
}

/**
 * The fields and the page as JSON: text as a string, other bytes as base64 and marked so. Whether a
 * page is text depends on its bytes alone, so that every envelope of one page agrees.
 */
export function pageEnvelope(fields: ResultFields, page: Uint8Array, pretty = false): string {
  return JSON.stringify({ ...fields, ...pageBody(page) }, undefined, pretty ? 2 : undefined);
}

/**
 * The fields and structured data as JSON: the data as an object or array. A page from which no data
 * was extracted, such as an error page, stays text.
 */
export function dataEnvelope(fields: ResultFields, data: Uint8Array): string {
  return JSON.stringify({ ...fields, ...dataBody(data) });
}

function pageBody(page: Uint8Array): EnvelopeBody {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
  return isUtf8(bytes)
    ? { body: bytes.toString('utf8') }
    : { body: bytes.toString('base64'), body_encoding: 'base64' };
}

function dataBody(data: Uint8Array): EnvelopeBody {
  const page = pageBody(data);
  if (page.body_encoding !== undefined) return page;
  try {
    const body: unknown = JSON.parse(String(page.body));
    return typeof body === 'object' && body !== null ? { body } : page;
  } catch {
    // Not JSON: the page itself.
    return page;
  }
}
