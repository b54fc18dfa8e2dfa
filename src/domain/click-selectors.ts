import { parse, stringify } from 'css-what';

/** One of several clicks. */
export interface ClickTarget {
  /** The first that matches is clicked. */
  readonly selectors: readonly string[];
  /** Whether the click is left out when nothing matches. */
  readonly isOptional: boolean;
}

/**
 * Parses `css_click_selector`: clicks separated by `|`, each a list of selectors of which the first
 * that matches is clicked, optional with `?` at its end. Throws an Error when one is not a CSS selector. (The `|` of CSS
 * namespaces is not supported, because a page cannot declare a namespace for it.)
 */
export function parseClickSelectors(text: string): ClickTarget[] {
  return splitClicks(text).map((click) => {
    const required = click.trimEnd().replace(/(?<!\\)\?$/, '');
    const isOptional = required !== click.trimEnd();
    const selectors = parse(required).map((selector) => stringify([selector]));
    if (selectors.length === 0) throw new Error('a selector is empty');
    return { selectors, isOptional };
  });
}

/** Splits at every `|` that is not inside brackets or quotes. */
function splitClicks(text: string): string[] {
  const parts = [''];
  let depth = 0;
  let quote = '';
  let escaped = false;
  for (const sign of text) {
    const isSeparator = sign === '|' && depth === 0 && quote === '' && !escaped;
    if (isSeparator) parts.push('');
    else parts[parts.length - 1] += sign;
    if (escaped) escaped = false;
    else if (sign === '\\') escaped = true;
    else if (quote !== '') quote = sign === quote ? '' : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === '[' || sign === '(') depth += 1;
    else if (sign === ']' || sign === ')') depth -= 1;
  }
  return parts;
}
