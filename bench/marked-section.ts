import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Replaces what stands in a Markdown file between `<!-- NAME -->` and `<!-- /NAME -->`. Throws an Error
 * when the file has no such place.
 */
export function writeMarkedSection(file: URL, name: string, section: string): void {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${file.pathname} has no place for ${name}`);
  const before = text.slice(0, from + begin.length);
  writeFileSync(file, `${before}\n\n${section.trim()}\n\n${text.slice(to)}`);
}
