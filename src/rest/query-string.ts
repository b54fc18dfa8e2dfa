import { unescape } from 'node:querystring';

/**
 * Decodes percent escapes; invalid ones stay or become U+FFFD, as with URLSearchParams. Never
 * throws.
 */
export function percentDecoded(text: string): string {
  return text.includes('%') ? unescape(text) : text;
}

/** The names and values of a query string in turn, in order, decoded; empty parts are skipped. */
export function parseQuery(query: string): string[] {
  const parameters: string[] = [];
  for (let at = 0; at < query.length; ) {
    let end = query.indexOf('&', at);
    if (end < 0) end = query.length;
    if (end > at) {
      const equals = query.indexOf('=', at);
      const split = equals >= 0 && equals < end;
      const name = query.slice(at, split ? equals : end);
      parameters.push(decoded(name), split ? decoded(query.slice(equals + 1, end)) : '');
    }
    at = end + 1;
  }
  return parameters;
}

function decoded(text: string): string {
  return percentDecoded(text.includes('+') ? text.replaceAll('+', ' ') : text);
}
