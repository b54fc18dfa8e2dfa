/**
 * Classes by which highlighters name the language: `language-js`, `highlight-source-shell`,
 * `highlight-python`, `brush: sql`.
 */
const LANGUAGE = /(?:^|\s)(?:lang(?:uage)?-|highlight-(?:source-|text-)?|brush:\s*)([\w+#.-]+)/;

/** A `pre` as a fenced block of code, with its language where a class names it. */
export function codeFence(pre: Element): string {
  const code = (pre.textContent ?? '').replace(/\n$/, '');
  const longest = Math.max(2, ...[...code.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${languageOf(pre)}\n${code}\n${fence}`;
}

function languageOf(pre: Element): string {
  const parent = pre.parentElement;
  for (const element of [pre.querySelector('code'), pre, parent, parent?.parentElement]) {
    const [, language] = LANGUAGE.exec(element?.getAttribute('class') ?? '') ?? [];
    if (language !== undefined) return language;
  }
  return '';
}
