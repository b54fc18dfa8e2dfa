import TurndownService from 'turndown/lib/turndown.browser.cjs.js';
import { readMain } from '../readable.ts';
import { elementText, type ScrapedPage } from '../scrapers/scraper.ts';
import { codeFence } from './code-fence.ts';
import { prepareDocument } from './prepare-document.ts';
import { tableRows } from './table-rows.ts';

/**
 * The page as Markdown of GitHub's flavour, with absolute links; with `readable` only its main
 * content, below its title. Modifies the document.
 */
export function markdown(page: ScrapedPage, readable: boolean): string {
  prepareDocument(page);
  const { body } = page.document;
  if (!readable) return convert(body);
  const part = shortMain(page) ?? body;
  const length = textLength(part);
  const whole = length < SHORT_PAGE ? service.turndown(part) : '';
  const main = readMain(page, true);
  const content = main?.content ?? undefined;
  if (content === undefined) return whole;
  const found = textLength(content);
  if ((found > length || found * 3 < length) && whole !== '') return whole;
  const text = convert(content as HTMLElement);
  const title = main?.title?.trim() ?? '';
  return title === '' ? text : `# ${title}\n\n${text}`;
}

/**
 * In a page of fewer characters, less than a third of them is not taken for the main content: it
 * was chosen among parts that are all short.
 */
const SHORT_PAGE = 1_000;
/** Characters of menus and banners around a short `main`. With more, it may be one part of many. */
const MAX_AROUND = 3_000;

/** The short part that the page itself says is the main one. */
function shortMain({ document }: ScrapedPage): HTMLElement | undefined {
  const part = document.querySelector<HTMLElement>('main, [role="main"]');
  const length = textLength(part);
  const isShort = length > 0 && length < SHORT_PAGE;
  return part !== null && isShort && textLength(document.body) < SHORT_PAGE + MAX_AROUND
    ? part
    : undefined;
}

function textLength(element: Element | null): number {
  return elementText(element)?.length ?? 0;
}

const service = new TurndownService({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
  // `_` is no emphasis within a word, and many languages have no spaces between words.
  emDelimiter: '*',
});
const escapeMarkdown = service.escape.bind(service);
// A tag that the page shows as text must not become one.
service.escape = (text) => escapeMarkdown(text).replace(/<(?=[a-z/!?])/gi, '\\<');

service.remove(['script', 'style', 'noscript', 'template', 'iframe', 'video', 'audio', 'canvas']);
service.remove(['select', 'textarea']);
// Its type knows only elements of HTML.
service.remove((node) => node.nodeName.toLowerCase() === 'svg');

service.addRule('strong', {
  filter: ['strong', 'b'],
  replacement: (content, node) => emphasis(content, node, '**', 'strong'),
});
service.addRule('emphasis', {
  filter: ['em', 'i'],
  replacement: (content, node) => emphasis(content, node, '*', 'em'),
});
service.addRule('strikethrough', {
  filter: (node) => /^(del|s|strike)$/i.test(node.nodeName),
  replacement: (content) => (content.trim() === '' ? '' : `~~${content}~~`),
});
service.addRule('raised', {
  filter: ['sup', 'sub'],
  replacement(content, node) {
    const name = node.nodeName.toLowerCase();
    // Links are references to notes, which need no place of their own.
    const isPlain = content.trim() === '' || content.includes('](');
    return isPlain ? content : `<${name}>${content}</${name}>`;
  },
});
service.addRule('keys', {
  filter: ['kbd', 'samp'],
  replacement: (content, node) =>
    content.trim() === '' ? '' : `\`${(node.textContent ?? '').replaceAll('`', '')}\``,
});
service.addRule('quotation', { filter: ['q'], replacement: (content) => `"${content}"` });
service.addRule('formula', {
  filter: (node) => node.nodeName.toLowerCase() === 'math',
  replacement(content, node) {
    const tex = (node as Element).querySelector('annotation[encoding="application/x-tex"]');
    const text = tex?.textContent?.trim() ?? '';
    if (text === '') return content;
    const isBlock = (node as Element).getAttribute('display') === 'block';
    return isBlock ? `\n\n$$\n${text}\n$$\n\n` : `$${text}$`;
  },
});
service.addRule('term', {
  filter: ['dt'],
  replacement: (content) => `\n\n${content.trim()}\n`,
});
service.addRule('definition', {
  filter: ['dd'],
  replacement: (content) => `\n: ${content.trim().replaceAll('\n', '\n  ')}\n`,
});
service.addRule('more blocks', {
  filter: (node) => /^(details|summary|legend|dialog|caption)$/i.test(node.nodeName),
  replacement: (content) => `\n\n${content.trim()}\n\n`,
});
service.addRule('task', {
  filter: (node) => node.hasAttribute('data-task'),
  replacement: (_content, node) => `${(node as Element).getAttribute('data-task')} `,
});
service.addRule('link', {
  filter: (node) => node.nodeName === 'A' && node.hasAttribute('href'),
  replacement(content, node) {
    const href = (node as Element).getAttribute('href') ?? '';
    const text = content.trim().replace(/\s*\n\s*/g, ' ');
    return text === '' ? '' : `[${text}](${href.replace(/[()]/g, '\\$&')})`;
  },
});
service.addRule('image', {
  filter: ['img'],
  replacement(_content, node) {
    const image = node as Element;
    const src = image.getAttribute('src') ?? '';
    const alt = (image.getAttribute('alt') ?? '').replace(/\s+/g, ' ').replace(/[[\]]/g, '\\$&');
    return src === '' ? '' : `![${alt}](${src.replace(/[()]/g, '\\$&')})`;
  },
});
service.addRule('code block', {
  filter: ['pre'],
  replacement: (_content, node) => `\n\n${codeFence(node)}\n\n`,
});
service.addRule('table', {
  filter: ['table'],
  replacement(content, node) {
    const rows = tableRows(node, (cell) => service.turndown(cell));
    return `\n\n${rows ?? content}\n\n`;
  },
});

/** Converts an element that is not used again: it is changed, where turndown would make a copy of the whole tree. */
function convert(element: HTMLElement): string {
  element.cloneNode = () => element;
  return service.turndown(element);
}

const LETTER = /[^\s\p{P}\p{S}]/u;

/**
 * Content between delimiters; between tags where CommonMark would not see the delimiters, such as
 * after a bracket that a letter follows.
 */
function emphasis(content: string, node: Node, mark: string, tag: string): string {
  if (content.trim() === '') return '';
  const first = /^./u.exec(content)?.[0] ?? '';
  const last = /.$/u.exec(content)?.[0] ?? '';
  const before = /.$/u.exec(node.previousSibling?.textContent ?? '')?.[0] ?? ' ';
  const after = /^./u.exec(node.nextSibling?.textContent ?? '')?.[0] ?? ' ';
  const isSeen =
    (LETTER.test(first) || !LETTER.test(before)) && (LETTER.test(last) || !LETTER.test(after));
  return isSeen ? `${mark}${content}${mark}` : `<${tag}>${content}</${tag}>`;
}
