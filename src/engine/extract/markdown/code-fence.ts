/**
 * Classes by which highlighters name the language: `language-js`, `highlight-source-shell`,
 * `highlight-python`, `brush: sql`.
 */
const LANGUAGE = /(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-|text-)?|brush:\s*)([\w+#.-]+)/;
/** highlight.js names it alone: `hljs javascript`, or `javascript hljs`. */
const BESIDE_HLJS = /^hljs\s+([\w+#.-]+)|^([\w+#.-]+)\s+hljs\b/;
const ATTRIBUTES = ['data-lang', 'data-language'];

/** A `pre` as a fenced block of code, with its language where a class or an attribute names it. */
export function codeFence(pre: Element): string {
  const code = (pre.textContent ?? '').replace(/\n$/, '');
  const longest = Math.max(2, ...[...code.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${languageOf(pre)}\n${code}\n${fence}`;
}

function languageOf(pre: Element): string {
  const parent = pre.parentElement;
  for (const element of [pre.querySelector('code'), pre, parent, parent?.parentElement]) {
    const names = element?.getAttribute('class')?.trim() ?? '';
    const [, language] = LANGUAGE.exec(names) ?? [];
    const [, after, before] = BESIDE_HLJS.exec(names) ?? [];
    const given = ATTRIBUTES.map((name) => element?.getAttribute(name)).find(isLanguage);
    const found = language ?? given ?? after ?? before;
    if (found !== undefined && found !== null) return found;
  }
  const lang = pre.getAttribute('lang');
  return isLanguage(lang) && !isOfText(pre, lang) ? lang : '';
}

function isLanguage(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && /^[\w+#.-]{1,32}$/.test(text);
}

/** Whether `lang` names the language of the text, as it does by the standard, not of the code. */
function isOfText(pre: Element, lang: string): boolean {
  const ofPage = pre.ownerDocument.documentElement.getAttribute('lang') ?? 'en';
  const main = (name: string): string => name.split('-', 1)[0]?.toLowerCase() ?? '';
  return /^en\b/i.test(lang) || main(lang) === main(ofPage);
}
