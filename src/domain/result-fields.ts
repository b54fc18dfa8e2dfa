import { isUtf8 } from 'node:buffer';
import type { CrawlStatus, ResultDetails } from './result.ts';

/** The fields of a result by their names on the wire, without the headers of the target. */
export const RESULT_FIELDS = [
  'original_status',
  'pc_status',
  'cb_status',
  'url',
  'pushed_url',
  'rid',
  'screenshot_url',
  'screenshot_failed',
  'failure',
  'metadata',
] as const;

/** A field of a result; `original_NAME` is a header of the target. */
export type ResultField = (typeof RESULT_FIELDS)[number] | `original_${string}`;

/** A result's fields without its page, by their names on the wire; an undefined one is left out. */
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
  const own: Record<(typeof RESULT_FIELDS)[number], string | number | undefined> = {
    original_status: result.originalStatus,
    pc_status: result.cbStatus,
    cb_status: result.cbStatus,
    url: result.url,
    pushed_url: result.pushedUrl,
    rid: result.rid,
    screenshot_url: details.screenshotUrl,
    screenshot_failed: details.screenshotFailed,
    failure: details.failure,
    metadata: details.metadata,
  };
  const ofPush = {
    batch: details.batch,
    again_of: details.againOf,
    crawled_at: details.crawledAt,
    rung: details.rung,
    climbed: details.climbed,
  };
  const fields: Record<string, string | number | undefined> = { ...own, ...ofPush, ...more };
  for (const [name, value] of Object.entries(details.originalHeaders ?? {})) {
    const field = `original_${name}`;
    if (PORTABLE_NAME.test(name) && !(field in fields)) fields[field] = value;
  }
  return fields;
}

/** A page as it is kept or sent: its bytes, or a JSON envelope of fields and the page. */
export interface Content {
  readonly contentType: string;
  readonly body: Uint8Array;
  /** Default: the bytes as they are. */
  readonly envelope?: Envelope | undefined;
}

/** What goes around a page. */
export interface Envelope {
  readonly fields: ResultFields;
  /** `page`: the page as text or base64; `data`: structured data as an object or array. */
  readonly of: 'page' | 'data';
  /** Indents the JSON; default false. */
  readonly pretty?: boolean | undefined;
}

/**
 * Bytes of a page that make one piece. A step that makes one and compresses it takes some
 * milliseconds at most, of a page that becomes six times as long in JSON, too.
 */
const PIECE_BYTES = 48 * 1_024;

/** Longer data is passed on as text: to parse it would take tens of milliseconds in one step. */
const MAX_DATA_BYTES = 2 * 1_024 * 1_024;

/** The bytes of a content, in pieces. */
export function* contentPieces({ body, envelope }: Content): Generator<Uint8Array> {
  if (envelope === undefined) {
    for (let at = 0; at < body.byteLength; at += PIECE_BYTES) {
      yield body.subarray(at, at + PIECE_BYTES);
    }
  } else if (envelope.of === 'page') {
    yield* pageEnvelope(envelope.fields, body, envelope.pretty);
  } else {
    yield* dataEnvelope(envelope.fields, body);
  }
}

/**
 * The fields and the page as JSON, in pieces: text as a string, other bytes as base64 and marked so.
 * Whether a page is text depends on its bytes alone, so that every envelope of one page agrees.
 */
export function* pageEnvelope(
  fields: ResultFields,
  page: Uint8Array,
  pretty = false,
): Generator<Uint8Array> {
  const bytes = Buffer.from(page.buffer, page.byteOffset, page.byteLength);
  const isText = isUtf8(bytes);
  const members = { ...fields, body: '', ...(isText ? {} : { body_encoding: 'base64' }) };
  const frame = JSON.stringify(members, undefined, pretty ? 2 : undefined);
  const mark = pretty ? '"body": "' : '"body":"';
  // Quotes within strings are escaped, so nothing else reads like this.
  const at = frame.lastIndexOf(`${mark}"`) + mark.length;
  yield Buffer.from(frame.slice(0, at));
  for (let from = 0; from < bytes.length; ) {
    const end = isText ? endOfCharacters(bytes, from + PIECE_BYTES) : from + PIECE_BYTES;
    const piece = bytes.subarray(from, end);
    yield Buffer.from(
      isText ? JSON.stringify(piece.toString('utf8')).slice(1, -1) : piece.toString('base64'),
    );
    from = end;
  }
  yield Buffer.from(frame.slice(at));
}

/** The last place up to `at` that is not within a character. */
function endOfCharacters(utf8: Uint8Array, at: number): number {
  let end = at;
  while (((utf8[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/**
 * The fields and structured data as JSON, in pieces: the data as an object or array. A page from
 * which no data was extracted, such as an error page, stays text.
 */
export function* dataEnvelope(fields: ResultFields, data: Uint8Array): Generator<Uint8Array> {
  const body = data.byteLength <= MAX_DATA_BYTES ? parsed(data) : undefined;
  if (body === undefined) yield* pageEnvelope(fields, data);
  else yield Buffer.from(JSON.stringify({ ...fields, body }));
}

/** The data, if it is an object or array; otherwise undefined. */
function parsed(data: Uint8Array): object | undefined {
  if (!isUtf8(data)) return undefined;
  try {
    const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? body : undefined;
  } catch {
    // Not JSON: the page itself.
    return undefined;
  }
}
