import type { Nodes } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import type { Passage } from './rules.ts';

const BLOCKS: ReadonlySet<string> = new Set(['paragraph', 'heading', 'tableCell']);

/** The passages of a Markdown text, whose first line has the number `firstLine`. Code is left out. */
export function markdownPassages(source: string, firstLine = 1): Passage[] {
  const tree = fromMarkdown(source, {
    extensions: [gfm()],
    mdastExtensions: [gfmFromMarkdown()],
  });
  const passages: Passage[] = [];
  visit(tree, (node) => {
    const text = textOf(node);
    const line = (node.position?.start.line ?? 1) + firstLine - 1;
    if (text !== '') passages.push({ line, text });
  });
  return passages;
}

function visit(node: Nodes, onBlock: (node: Nodes) => void): void {
  if (BLOCKS.has(node.type)) onBlock(node);
  else if ('children' in node) for (const child of node.children) visit(child, onBlock);
}

/** The text as it is read; a piece of code, a link's address or an image is one word at most. */
function textOf(node: Nodes): string {
  // With a capital, because a sentence may begin with it.
  if (node.type === 'inlineCode') return 'Code';
  if (node.type === 'image' || node.type === 'html') return '';
  if (node.type === 'break') return ' ';
  if ('children' in node) return node.children.map(textOf).join('');
  return node.type === 'text' ? node.value : '';
}
