/**
 * Gives parts that a reader of the main content would drop a form that it keeps: formulas in
 * scripts become MathML, checkboxes of lists become text with an attribute `data-task`.
 */
export function keepParts(document: Document): void {
  for (const script of document.querySelectorAll('script[type^="math/tex"]')) {
    script.replaceWith(formulaOf(document, script));
  }
  for (const box of document.querySelectorAll('li input[type="checkbox"]')) {
    const task = document.createElement('span');
    task.textContent = box.hasAttribute('checked') ? '[x]' : '[ ]';
    task.setAttribute('data-task', task.textContent);
    box.replaceWith(task);
  }
}

/** MathJax 2 draws the formula before its script. */
function formulaOf(document: Document, script: Element): Element {
  for (
    let drawn = script.previousElementSibling;
    drawn?.getAttribute('class')?.startsWith('MathJax') === true;
    drawn = script.previousElementSibling
  ) {
    drawn.remove();
  }
  const formula = document.createElement('math');
  if (/mode=display/.test(script.getAttribute('type') ?? '')) {
    formula.setAttribute('display', 'block');
  }
  const tex = document.createElement('annotation');
  tex.setAttribute('encoding', 'application/x-tex');
  tex.textContent = script.textContent;
  formula.append(tex);
  return formula;
}

const HIDING = /(?:^|;)\s*display\s*:\s*none\b/i;

/**
 * Removes what an inline style hides. A script shows the page itself later, and MediaWiki hides
 * formulas next to their pictures: what contains these becomes visible.
 */
export function removeHidden(document: Document): void {
  const kept = new Set<Element>([document.body]);
  for (const part of document.querySelectorAll('main, h1, math')) {
    // Marked upwards, so that each element is visited once.
    for (let each: Element | null = part; each !== null && !kept.has(each); ) {
      kept.add(each);
      each = each.parentElement;
    }
  }
  for (const element of document.querySelectorAll('[style]')) {
    if (!HIDING.test(element.getAttribute('style') ?? '')) continue;
    if (kept.has(element)) element.removeAttribute('style');
    else element.remove();
  }
}
