import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { markdown } from '../../../src/engine/extract/markdown/markdown.ts';
import { parseDocument } from '../../../src/engine/extract/parse-document.ts';
import { scraperFor, scrapers } from '../../../src/engine/extract/scrapers/scrapers.ts';

// Each page has what is expected of it next to it: `.md`, `.main.md` (its main content) and `.json`
// (autoparse). `-u` writes them anew; read the difference before it is committed.

const folder = join(import.meta.dirname, '..', '..', 'fixtures', 'pages');
const files = readdirSync(folder);
const names = files.filter((file) => file.endsWith('.html')).map((file) => file.slice(0, -5));

function pageOf(name: string) {
  const document = parseDocument(readFileSync(join(folder, `${name}.html`), 'utf8'));
  return { document, url: `https://site.example/a/${name}` };
}

test('every page has its expectations', () => {
  const expected = names.flatMap((name) =>
    ['html', 'json', 'main.md', 'md'].map((end) => `${name}.${end}`),
  );
  expect(files.toSorted()).toEqual(expected.toSorted());
});

describe.each(names)('%s', (name) => {
  test('as Markdown', async () => {
    await expect(`${markdown(pageOf(name), false)}\n`).toMatchFileSnapshot(
      join(folder, `${name}.md`),
    );
  });

  test('as Markdown of the main content', async () => {
    const path = join(folder, `${name}.main.md`);
    await expect(`${markdown(pageOf(name), true)}\n`).toMatchFileSnapshot(path);
  });

  test('as data', async () => {
    const page = pageOf(name);
    const scraper = scraperFor(page);
    const data = { scraper, ...(scrapers[scraper](page) as object) };
    const text = `${JSON.stringify(data, undefined, 2)}\n`;
    await expect(text).toMatchFileSnapshot(join(folder, `${name}.json`));
  });
});
