/** One part of a path: a literal, one segment of any text, or all remaining segments. */
export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'rest' };

/**
 * A field bound by the path: the segments from `from` up to, but not including, `to`; to the end
 * when undefined.
 */
export interface TemplateVariable {
  /** Proto names joined by dots. */
  readonly field: string;
  readonly from: number;
  readonly to: number | undefined;
}

/** A parsed path template of google.api.http. */
export interface Template {
  readonly source: string;
  readonly segments: readonly TemplateSegment[];
  readonly variables: readonly TemplateVariable[];
  /** The text after the last `:`; empty without a colon. */
  readonly verb: string;
}

const IDENTIFIER = /[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*/y;
const LITERAL = /(?:[A-Za-z0-9\-._~!$&'()+,;=@]|%[0-9A-Fa-f]{2})+/y;

/**
 * Parses `/v1/{name=shelves/*}/books/{book}:verb`, the grammar of google/api/http.proto, and `/`
 * alone. Throws an Error that names the template and the position of the fault.
 */
export function parseTemplate(source: string): Template {
  const segments: TemplateSegment[] = [];
  const variables: TemplateVariable[] = [];
  let at = 0;

  const fail = (what: string): never => {
    throw new Error(`path template "${source}": ${what} at position ${at}`);
  };
  const take = (text: string): boolean => {
    if (!source.startsWith(text, at)) return false;
    at += text.length;
    return true;
  };
  const expect = (text: string): void => {
    if (!take(text)) fail(`"${text}" expected`);
  };
  const token = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(source)?.[0];
    at += found?.length ?? 0;
    return found;
  };

  function plainSegment(): void {
    if (segments.at(-1)?.kind === 'rest') fail('nothing may follow "**"');
    if (take('**')) segments.push({ kind: 'rest' });
    else if (take('*')) segments.push({ kind: 'any' });
    else {
      const text = token(LITERAL) ?? fail('a segment expected');
      segments.push({ kind: 'literal', text: decodeURIComponent(text) });
    }
  }

  function variable(): void {
    const field = token(IDENTIFIER) ?? fail('a field name expected');
    if (variables.some((other) => other.field === field)) fail(`"${field}" is bound twice`);
    const from = segments.length;
    if (take('=')) {
      do plainSegment();
      while (take('/'));
    } else {
      if (segments.at(-1)?.kind === 'rest') fail('nothing may follow "**"');
      segments.push({ kind: 'any' });
    }
    const to = segments.at(-1)?.kind === 'rest' ? undefined : segments.length;
    variables.push({ field, from, to });
    expect('}');
  }

  expect('/');
  if (at < source.length) {
    do {
      if (take('{')) variable();
      else plainSegment();
    } while (take('/'));
  }
  const verb = take(':') ? (token(LITERAL) ?? fail('a verb expected')) : '';
  if (at < source.length) fail('unexpected text');
  return { source, segments, variables, verb };
}
