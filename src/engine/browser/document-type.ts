import { headerValues } from '../../net/raw-headers.ts';
import type { DocumentResponse } from './document-response.ts';

/** Types that tell Chromium nothing, so that it judges by the content. */
const UNKNOWN: ReadonlySet<string> = new Set(['unknown/unknown', 'application/unknown']);

/**
 * The media type that Chromium reads from `Content-Type`, in lower case: of several, also by commas, the
 * last that is one. Undefined when it judges by the content.
 */
export function documentType({ headers }: DocumentResponse): string | undefined {
  const values = headerValues(headers, 'content-type').flatMap((value) =>
    // A comma in a quoted parameter separates nothing.
    value.includes('"') ? [value] : value.split(','),
  );
  const type = values
    .map((value) => (/^\s*([^\s;(]*)/.exec(value)?.[1] ?? '').toLowerCase())
    .findLast((each) => each.includes('/') && each !== '*/*');
  return type !== undefined && UNKNOWN.has(type) ? undefined : type;
}

/**
 * Whether Chromium saves a document as a file because of `Content-Disposition`: by any type but
 * `inline`. A parameter or quoted text in its place is no type.
 */
export function isDownload({ headers }: DocumentResponse): boolean {
  const [first = ''] = headerValues(headers, 'content-disposition').join(', ').split(';', 1);
  const type = first.trim().toLowerCase();
  return type !== '' && type !== 'inline' && !/[="]/.test(type);
}
