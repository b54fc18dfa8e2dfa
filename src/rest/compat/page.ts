import { toHeaderText } from '../../domain/header-rules.ts';
import { jsonBody, structuredBody } from '../../domain/json-body.ts';

/** Clients of the reference read how many requests their plan leaves; here none is counted, so there are always plenty. */
export const REMAINING_REQUESTS = 1_000_000;

/** What is said of a crawled page beside its body, by wire name; what is undefined is left out. */
export type ResultFields = Readonly<Record<string, string | number | undefined>>;

/** A result whose facts are told: an inline crawl's or a stored one. */
export interface PageSource {
  readonly url: string;
  readonly pushedUrl: string;
  readonly originalStatus: number;
  readonly cbStatus: number;
  readonly rid?: string | undefined;
  readonly screenshotUrl?: string | undefined;
  readonly screenshotFailed?: string | undefined;
  readonly failure?: string | undefined;
  readonly originalHeaders: Readonly<Record<string, string>>;
}

/**
 * The facts of a page in the order they are sent. The status goes under its older name too, the target's headers as
 * `original_<name>` with underscores; names that HTTP cannot carry are left out.
 */
export function resultFieldsOf(page: PageSource, more: ResultFields = {}): ResultFields {
  const facts: Record<string, string | number | undefined> = {
    original_status: page.originalStatus,
    pc_status: page.cbStatus,
    cb_status: page.cbStatus,
    url: page.url,
    pushed_url: page.pushedUrl,
    rid: page.rid,
    screenshot_url: page.screenshotUrl,
    screenshot_failed: page.screenshotFailed,
    failure: page.failure,
    ...more,
  };
  for (const [name, value] of Object.entries(page.originalHeaders)) {
    const key = `original_${name.toLowerCase().replaceAll('-', '_')}`;
    // The target must not overwrite what the service says, as with a header named "status".
    if (/^[\w.]+$/.test(key) && !(key in facts)) facts[key] = value;
  }
  return facts;
}

/** Node's HTTP client, for one, takes 16 KiB of headers by default. */
const MAX_CHARACTERS = 13_000;

/** The facts as response headers, safe to send; `pushed_url` only when there is room for it. */
export function headersFromFields(facts: ResultFields): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(facts)) {
    if (value !== undefined) headers[name] = toHeaderText(String(value));
  }
  const characters = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  if (characters > MAX_CHARACTERS) delete headers['pushed_url'];
  return headers;
}

/** The facts and, where structured data was asked for, the data as JSON text. */
export function toDataEnvelope(facts: ResultFields, data: Uint8Array): string {
  return JSON.stringify({ ...facts, ...structuredBody(data) });
}

/** The facts and the page as JSON text with scalar values only: text as it is, other bytes as base64 and said so. */
export function toEnvelope(facts: ResultFields, page: Uint8Array, pretty: boolean): string {
  return JSON.stringify({ ...facts, ...jsonBody(page) }, undefined, pretty ? 2 : undefined);
}
