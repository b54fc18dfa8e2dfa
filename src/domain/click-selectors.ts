import { parse, stringify } from 'css-what';

/**
 * Parses `css_click_selector`: clicks separated by `|`, each a list of selectors of which the first
 * that matches is clicked. Throws an Error when one is not a CSS selector. (The `|` of CSS
 * namespaces is not supported, because a page cannot declare a namespace for it.)
 */
export function parseClickSelectors(text: string): string[][] {
  return splitClicks(text).map((click) => {
    const alternatives = parse(click).map((selector) => stringify([selector]));
    if (alternatives.length === 0) throw new Error('a selector is empty');
    return alternatives;
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
