import { parseHTML } from 'linkedom/worker';
import { type DefaultTreeAdapterTypes, html as names, parse } from 'parse5';

/**
 * As in browsers, elements that are nested deeper become siblings, so that recursion over the tree
 * does not exceed the stack.
 */
const MAX_DEPTH = 512;

/** linkedom needs time for each attribute that an element already has. */
const MAX_ATTRIBUTES = 256;

interface Place {
  readonly parent: ParentNode & Node;
  readonly depth: number;
}

/**
 * Parses an HTML page by the rules of the HTML standard: html, head and body exist even when the
 * page does not contain them. The parser of linkedom does not follow these rules, so its tree is
 * built from parse5's. The page is parsed as in a browser without scripts.
 */
export function parseDocument(html: string): Document {
  const { document } = parseHTML('<!doctype html>') as unknown as { document: Document };
  const root = parse(html, { scriptingEnabled: false });
  // A list instead of recursion, because a hostile page nests hundreds of thousands of elements.
  const open: (readonly [DefaultTreeAdapterTypes.ChildNode, Place])[] = [];
  const pushChildren = (
    children: readonly DefaultTreeAdapterTypes.ChildNode[],
    place: Place,
  ): void => {
    for (const child of children.toReversed()) open.push([child, place]);
  };
  pushChildren(root.childNodes, { parent: document, depth: 0 });
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [node, place] = next;
    const made = toNode(document, node);
    if (made === undefined) continue;
    place.parent.appendChild(made);
    if (!('tagName' in node)) continue;
    const children = 'content' in node ? node.content.childNodes : node.childNodes;
    const deep = place.depth >= MAX_DEPTH;
    pushChildren(children, deep ? place : { parent: made as Element, depth: place.depth + 1 });
  }
  return document;
}

function toNode(document: Document, node: DefaultTreeAdapterTypes.ChildNode): Node | undefined {
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
