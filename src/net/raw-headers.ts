import type { HttpResponse } from './http-client.ts';

type RawHeaders =
  | readonly (Buffer | string)[]
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Pairs of lower-case names and values from undici's raw forms: for HTTP/1.1 an array of names and
 * values in turn, for HTTP/2 an object. Bytes are read as Latin-1, which loses none.
 */
export function toHeaderPairs(raw: RawHeaders): HttpResponse['headers'] {
  const pairs: [string, string][] = [];
  if (isList(raw)) {
    for (let at = 0; at + 1 < raw.length; at += 2) {
      pairs.push([text(raw[at]).toLowerCase(), text(raw[at + 1])]);
    }
    return pairs;
  }
  for (const [name, value] of Object.entries(raw)) {
    if (value === undefined || name.startsWith(':')) continue;
    for (const each of typeof value === 'string' ? [value] : value) {
      pairs.push([name.toLowerCase(), each]);
    }
  }
  return pairs;
}

/** The values of a header, in the order received; `name` is in lower case. */
export function headerValues(headers: HttpResponse['headers'], name: string): string[] {
  return headers.filter(([each]) => each === name).map(([, value]) => value);
}

function isList(raw: RawHeaders): raw is readonly (Buffer | string)[] {
  return Array.isArray(raw);
}

function text(value: Buffer | string | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : value.toString('latin1');
}
