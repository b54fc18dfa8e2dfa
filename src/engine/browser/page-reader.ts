import type { Protocol } from 'devtools-protocol';
import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Evaluates an expression in an isolated world of a page, where built-ins that the page has
 * replaced are not used.
 */
export async function evaluate(
  page: BrowserPage,
  expression: string,
  timeoutMs?: number,
): Promise<unknown> {
  const { executionContextId: contextId } = await page.send('Page.createIsolatedWorld', {
    frameId: page.frameId,
    worldName: 'crawler',
  });
  return evaluateIn(page, contextId, expression, timeoutMs);
}

async function evaluateIn(
  page: BrowserPage,
  contextId: Protocol.Runtime.ExecutionContextId,
  expression: string,
  timeoutMs?: number,
): Promise<unknown> {
  const { result, exceptionDetails } = await page.send(
    'Runtime.evaluate',
    { contextId, expression, returnByValue: true },
    timeoutMs,
  );
  if (exceptionDetails !== undefined) {
    throw new CdpError('refused', `in the page: ${exceptionDetails.text}`);
  }
  return result.value as unknown;
}

/** Characters that are transferred at once. */
const PIECE = 1024 * 1024;

// A function that returns the page as a reader sees it: the content of open shadow trees in their
// hosts, and slotted content in its slot. Getters are called explicitly, because an image named
// `documentElement` would hide the property of that name. The copy belongs to a document without
// scripts, so that copying creates no custom elements. A tree that is too deep for the recursion is
// returned as it is.
const FLATTEN = `(root) => {
  const getter = (prototype, name) => {
    const { get } = Object.getOwnPropertyDescriptor(prototype, name);
    return (node) => get.call(node);
  };
  const childNodes = getter(Node.prototype, 'childNodes');
  const shadowRoot = getter(Element.prototype, 'shadowRoot');
  const elements = [root, ...document.querySelectorAll('*')];
  if (elements.every((each) => shadowRoot(each) === null)) return root;
  const inert = document.implementation.createHTMLDocument('');
  const copy = (node, into, inShadow) => {
    if (inShadow && node instanceof HTMLSlotElement) {
      for (const each of node.assignedNodes({ flatten: true })) copy(each, into, inShadow);
      return;
    }
    const own = into.appendChild(inert.importNode(node, false));
    const tree = node instanceof Element ? shadowRoot(node) : null;
    if (node instanceof HTMLTemplateElement) own.innerHTML = node.innerHTML;
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
const serialize = (maxLength: number): string => `(() => {
  const get = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const element = get('documentElement');
  const doctype = get('doctype');
  const texts = document.createTreeWalker(document, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_COMMENT);
  let length = 0;
  while (length <= ${maxLength} && texts.nextNode() !== null) length += texts.currentNode.length;
  if (length > ${maxLength}) return { length, piece: '' };
  globalThis.text = (doctype === null ? '' : new XMLSerializer().serializeToString(doctype)) +
    (element === null ? '' : (${FLATTEN})(element).outerHTML);
  return { length: text.length, piece: text.slice(0, ${PIECE}) };
})()`;

/**
 * The document as HTML in UTF-8. Undefined when it is longer than `maxBytes`; then at most one
 * piece of it was transferred. Rejects with a `CdpError` when the page navigates to another
 * document meanwhile.
 */
export async function readHtml(
  page: BrowserPage,
  maxBytes: number,
  timeoutMs: number,
): Promise<Buffer | undefined> {
  const { executionContextId: contextId } = await page.send('Page.createIsolatedWorld', {
    frameId: page.frameId,
    worldName: 'crawler',
  });
  const { length, piece } = (await evaluateIn(page, contextId, serialize(maxBytes), timeoutMs)) as {
    length: number;
    piece: string;
  };
  // A character takes at least one byte.
  if (length > maxBytes) return undefined;
  const pieces = [piece];
  for (let from = PIECE; from < length; from += PIECE) {
    const next = await evaluateIn(
      page,
      contextId,
      `text.slice(${from}, ${from + PIECE})`,
      timeoutMs,
    );
    pieces.push(String(next));
  }
  const html = Buffer.from(pieces.join(''));
  return html.length > maxBytes ? undefined : html;
}
