import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Evaluates an expression, or awaits its promise, in an isolated world of a page, where built-ins
 * that the page has replaced are not used.
 */
export async function evaluate(
  page: BrowserPage,
  expression: string,
  timeoutMs?: number,
): Promise<unknown> {
  const evaluateThere = await openWorld(page, timeoutMs);
  return evaluateThere(expression);
}

/** Opens an isolated world of a page. Returns what evaluates expressions in it. */
async function openWorld(
  page: BrowserPage,
  timeoutMs?: number,
): Promise<(expression: string) => Promise<unknown>> {
  const { executionContextId: contextId } = await page.send('Page.createIsolatedWorld', {
    frameId: page.frameId,
    worldName: 'crawler',
  });
  return async (expression) => {
    const { result, exceptionDetails } = await page.send(
      'Runtime.evaluate',
      { contextId, expression, returnByValue: true, awaitPromise: true },
      timeoutMs,
    );
    if (exceptionDetails !== undefined) {
      throw new CdpError('refused', `in the page: ${exceptionDetails.text}`);
    }
    return result.value as unknown;
  };
}

/** Characters that are transferred at once. */
const PIECE = 1024 * 1024;

// A function that returns the page as a reader sees it: the content of open shadow trees in their
// hosts, and slotted content in its slot. With `frames` the content of frames is in their place.
// Getters are called explicitly, because an image named `documentElement` would hide the property
// of that name. The copy belongs to a document without scripts, so that copying creates no custom
// elements. Nodes of frames belong to other globals, so types are told by number and name. A tree
// that is too deep for the recursion is returned as it is.
const FLATTEN = `(root, frames) => {
  const getter = (prototype, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (node) => get.call(node);
  };
  const childNodes = getter(Node.prototype, 'childNodes');
  const shadowRoot = getter(Element.prototype, 'shadowRoot');
  const localName = getter(Element.prototype, 'localName');
  const nodeType = getter(Node.prototype, 'nodeType');
  const documentElement = getter(Document.prototype, 'documentElement');
  const isElement = (node, name) => nodeType(node) === 1 && localName(node) === name;
  const content = (node) => {
    if (!frames || !(isElement(node, 'iframe') || isElement(node, 'frame'))) return null;
    const inside = node.contentDocument;
    return inside === null ? null : documentElement(inside);
  };
  const elements = [root, ...document.querySelectorAll('*')];
  if (elements.every((each) => shadowRoot(each) === null && content(each) === null)) return root;
  const inert = document.implementation.createHTMLDocument('');
  const copy = (node, into, inShadow) => {
    if (inShadow && isElement(node, 'slot')) {
      for (const each of node.assignedNodes({ flatten: true })) copy(each, into, inShadow);
      return;
    }
    const framed = content(node);
    if (framed !== null) {
      const place = into.appendChild(inert.createElement('div'));
      place.setAttribute('data-frame', node.contentDocument.URL);
      for (const part of childNodes(framed)) {
        if (isElement(part, 'head')) continue;
        for (const each of childNodes(part)) copy(each, place, false);
      }
      return;
    }
    const own = into.appendChild(inert.importNode(node, false));
    const tree = nodeType(node) === 1 ? shadowRoot(node) : null;
    if (isElement(node, 'template')) own.innerHTML = node.innerHTML;
    else for (const each of childNodes(tree ?? node)) copy(each, own, inShadow || tree !== null);
  };
  try {
    const holder = inert.createDocumentFragment();
    copy(root, holder, false);
    return holder.firstChild;
  } catch {
    return root;
  }
}`;

// Counts only the text first, because serializing a page of a hundred megabytes takes a gigabyte.
const serialize = (maxLength: number, frames: boolean): string => `(() => {
  const get = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const element = get('documentElement');
  const doctype = get('doctype');
  const texts = document.createTreeWalker(document, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_COMMENT);
  let length = 0;
  while (length <= ${maxLength} && texts.nextNode() !== null) length += texts.currentNode.length;
  if (length > ${maxLength}) return { length, piece: '' };
  globalThis.text = (doctype === null ? '' : new XMLSerializer().serializeToString(doctype)) +
    (element === null ? '' : (${FLATTEN})(element, ${frames}).outerHTML);
  return { length: text.length, piece: text.slice(0, ${PIECE}) };
})()`;

/**
 * The document as HTML in UTF-8; with `frames` with the content of the frames of its origin. Undefined when it is longer than `maxBytes`; then at most one
 * piece of it was transferred. Rejects with a `CdpError` when the page navigates to another
 * document during that.
 */
export async function readHtml(
  page: BrowserPage,
  {
    maxBytes,
    timeoutMs,
    frames = false,
  }: { readonly maxBytes: number; readonly timeoutMs: number; readonly frames?: boolean },
): Promise<Buffer | undefined> {
  const evaluateThere = await openWorld(page, timeoutMs);
  const { length, piece } = (await evaluateThere(serialize(maxBytes, frames))) as {
    length: number;
    piece: string;
  };
  // A character takes at least one byte.
  if (length > maxBytes) return undefined;
  const pieces = [piece];
  for (let from = PIECE; from < length; from += PIECE) {
    pieces.push(String(await evaluateThere(`text.slice(${from}, ${from + PIECE})`)));
  }
  const html = Buffer.from(pieces.join(''));
  return html.length > maxBytes ? undefined : html;
}
