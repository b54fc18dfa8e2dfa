import { parseHTML } from 'linkedom';
import { type DefaultTreeAdapterTypes, html as names, parse } from 'parse5';

/**
 * As browsers do: what is nested deeper becomes a sibling, so that nobody who walks the tree runs
 * out of stack.
 */
const MAX_DEPTH = 512;

/** Setting one takes as long as there are others. */
const MAX_ATTRIBUTES = 256;

interface Place {
  readonly parent: ParentNode & Node;
  readonly depth: number;
}

/**
 * The document of an HTML page, built by the HTML standard's rules: html, head and body are there
 * even when the page does not write them. linkedom's own parser does not, so its tree is made from
 * parse5's. The page is read as by a browser without scripts.
 */
export function parseDocument(html: string): Document {
  const { document } = parseHTML('<!doctype html>') as unknown as { document: Document };
  const root = parse(html, { scriptingEnabled: false });
  // A stack of its own instead of recursion: a hostile page nests hundreds of thousands of
  // elements.
  const open: (readonly [DefaultTreeAdapterTypes.ChildNode, Place])[] = [];
  const enter = (children: readonly DefaultTreeAdapterTypes.ChildNode[], place: Place): void => {
    for (const child of children.toReversed()) open.push([child, place]);
  };
  enter(root.childNodes, { parent: document, depth: 0 });
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [node, place] = next;
    const made = nodeOf(document, node);
    if (made === undefined) continue;
    place.parent.appendChild(made);
    if (!('tagName' in node)) continue;
    const children = 'content' in node ? node.content.childNodes : node.childNodes;
    const deep = place.depth >= MAX_DEPTH;
    enter(children, deep ? place : { parent: made as Element, depth: place.depth + 1 });
  }
  return document;
}

function nodeOf(document: Document, node: DefaultTreeAdapterTypes.ChildNode): Node | undefined {
  if ('tagName' in node) {
    const element =
      node.namespaceURI === names.NS.SVG
        ? document.createElementNS(names.NS.SVG, node.tagName)
        : document.createElement(node.tagName);
    for (const { prefix, name, value } of node.attrs.slice(0, MAX_ATTRIBUTES)) {
      element.setAttribute(
        prefix === undefined || prefix === '' ? name : `${prefix}:${name}`,
        value,
      );
    }
    return element;
  }
  if (node.nodeName === '#text') {
    return document.createTextNode(node.value);
  }
  if (node.nodeName === '#comment') {
    return document.createComment(node.data);
  }
  return undefined;
}
