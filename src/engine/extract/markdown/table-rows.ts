/** Wider tables are read as layout, so that empty cells stay few. */
const MAX_COLUMNS = 100;

/**
 * A table in GitHub's flavour of Markdown; `cellMarkdown` converts a cell. Undefined for a table
 * that only arranges the page: its cells are blocks. Cells that span others leave those empty.
 */
export function tableRows(
  table: Element,
  cellMarkdown: (cell: HTMLElement) => string,
): string | undefined {
  const isLayout =
    /^(presentation|none)$/i.test(table.getAttribute('role') ?? '') ||
    table.querySelector('table, h1, h2, h3, h4, h5, h6, form, pre') !== null;
  if (isLayout) return undefined;
  const rows = [...table.querySelectorAll('tr')].filter((row) => row.children.length > 0);
  const [first] = rows;
  if (first === undefined || rows.every((row) => row.children.length === 1)) return undefined;
  const grid = placeCells(rows, cellMarkdown);
  if (grid === undefined) return undefined;

  const width = Math.max(...grid.map((row) => row.length));
  const isHead =
    first.parentElement?.tagName === 'THEAD' ||
    [...first.children].every((cell) => cell.tagName === 'TH');
  const head = isHead ? (grid.shift() ?? []) : [];
  const aligns = isHead ? [...first.children].map(delimiter) : [];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const filled = (cells: readonly string[], filling: string): string[] =>
    Array.from({ length: width }, (_, column) => cells[column] ?? filling);
  const hasSpan = first.querySelector('[colspan]') !== null;
  const caption = table.querySelector('caption');
  return [
    ...(caption === null ? [] : [cellMarkdown(caption), '']),
    line(filled(head, '')),
    line(filled(hasSpan ? [] : aligns, '---')),
    ...grid.map(line),
  ].join('\n');
}

/** The cells' texts by row and column; undefined when there are too many columns. */
function placeCells(
  rows: readonly Element[],
  cellMarkdown: (cell: HTMLElement) => string,
): string[][] | undefined {
  /** How many more rows a cell above reaches into, by column. */
  const reach: number[] = [];
  const grid: string[][] = [];
  for (const row of rows) {
    const texts: string[] = [];
    const skipReached = (): void => {
      while ((reach[texts.length] ?? 0) > 0) {
        reach[texts.length] = (reach[texts.length] ?? 0) - 1;
        texts.push('');
      }
    };
    for (const cell of row.children) {
      skipReached();
      const columns = span(cell, 'colspan');
      if (texts.length + columns > MAX_COLUMNS) return undefined;
      const text = cellMarkdown(cell as HTMLElement).trim();
      for (let column = 0; column < columns; column += 1) {
        reach[texts.length] = span(cell, 'rowspan') - 1;
        texts.push(column === 0 ? oneLine(text) : '');
      }
    }
    skipReached();
    grid.push(texts);
  }
  return grid;
}

function oneLine(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s*\n\s*/g, '<br>');
}

function span(cell: Element, name: 'colspan' | 'rowspan'): number {
  return Math.max(1, Number.parseInt(cell.getAttribute(name) ?? '1', 10) || 1);
}

function delimiter(cell: Element): string {
  const style = /text-align:\s*(\w+)/i.exec(cell.getAttribute('style') ?? '')?.[1];
  const align = (style ?? cell.getAttribute('align') ?? '').toLowerCase();
  return { right: '---:', center: ':---:', left: ':---' }[align] ?? '---';
}
