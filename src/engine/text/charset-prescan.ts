/**
 * The HTML standard demands 1,024 bytes. Some pages have long styles and scripts before their `meta`, and
 * browsers find it anywhere in the `head`.
 */
const PRESCAN_BYTES = 65_536;
/** The first bytes are searched in any case: scripts and comments may name a `body`. */
const SURE_BYTES = 4_096;
/** What begins the content of a page, behind its `head`. */
const BODY = /<body[\s>]/i;
const MAX_LABEL = 40;

/**
 * The character set that a document names in its first bytes, in a `meta` of HTML or the
 * declaration of XML; undefined without one. A `meta` that names UTF-16 or `x-user-defined` cannot
 * be right; as in the HTML standard it means UTF-8 or windows-1252. Every step is linear in the
 * bytes that are read.
 */
export function charsetInDocument(bytes: Uint8Array, mediaType: string): string | undefined {
  const utf16 = utf16Declaration(bytes);
  if (utf16 !== undefined) return utf16;
  const start = Buffer.from(bytes.subarray(0, PRESCAN_BYTES)).toString('latin1');
  const body = start.slice(SURE_BYTES).search(BODY);
  const head = body < 0 ? start : start.slice(0, SURE_BYTES + body);
  const declared = charsetInXmlDeclaration(head);
  if (!mediaType.includes('html')) return declared;
  return charsetInMeta(withoutComments(head)) ?? declared;
}

// `<?` in UTF-16: the rest of the document is UTF-16, too.
function utf16Declaration(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 4)).toString('hex');
  if (start === '3c003f00') return 'utf-16le';
  if (start === '003c003f') return 'utf-16be';
  return undefined;
}

function charsetInXmlDeclaration(head: string): string | undefined {
  const start = head.trimStart();
  if (!/^<\?xml\s/i.test(start)) return undefined;
  const end = start.indexOf('>');
  const label = parseAttributes(start.slice(5, end < 0 ? undefined : end)).get('encoding');
  return label === undefined || label === '' ? undefined : label.slice(0, MAX_LABEL);
}

function withoutComments(head: string): string {
  let text = '';
  let from = 0;
  for (;;) {
    const start = head.indexOf('<!--', from);
    const end = start < 0 ? -1 : head.indexOf('-->', start + 4);
    if (end < 0) return text + head.slice(from);
    text += head.slice(from, start);
    from = end + 3;
  }
}

function charsetInMeta(head: string): string | undefined {
  for (const [tag] of head.matchAll(/<meta[\s/][^>]*/gi)) {
    const attributes = parseAttributes(tag.slice(5));
    const isDeclaration = attributes.get('http-equiv')?.toLowerCase() === 'content-type';
    const label =
      attributes.get('charset') ??
      (isDeclaration ? charsetInContent(attributes.get('content') ?? '') : undefined);
    if (label === undefined || label === '') continue;
    if (/^utf-?16/i.test(label)) return 'utf-8';
    if (/^x-user-defined$/i.test(label)) return 'windows-1252';
    return label.slice(0, MAX_LABEL);
  }
  return undefined;
}

/** The `charset=` within `text/html; charset=...`. */
function charsetInContent(content: string): string | undefined {
  const at = content.toLowerCase().indexOf('charset');
  if (at < 0) return undefined;
  const rest = content.slice(at + 7).trimStart();
  if (!rest.startsWith('=')) return undefined;
  return /^["']?([^\s"';]*)/.exec(rest.slice(1).trimStart())?.[1];
}

const NAME_END = /[\s=/]/;
const SPACE_OR_SLASH = /[\s/]/;

/** The attributes of a tag, names in lower case; of repeated ones the first counts. */
function parseAttributes(tag: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = 0;
  const skip = (pattern: RegExp): void => {
    while (at < tag.length && pattern.test(tag[at] ?? '')) at += 1;
  };
  const until = (isEnd: (character: string) => boolean): string => {
    const from = at;
    while (at < tag.length && !isEnd(tag[at] ?? '')) at += 1;
    return tag.slice(from, at);
  };
  for (;;) {
    skip(SPACE_OR_SLASH);
    if (at >= tag.length) return found;
    const start = at;
    const name = until((each) => NAME_END.test(each)).toLowerCase();
    // A stray equals sign is part of a name.
    if (at === start) at += 1;
    skip(/\s/);
    let value = '';
    if (tag[at] === '=') {
      at += 1;
      skip(/\s/);
      const quote = tag[at];
      if (quote === '"' || quote === "'") {
        at += 1;
        value = until((each) => each === quote);
        at += 1;
      } else {
        value = until((each) => /\s/.test(each));
      }
    }
    if (!found.has(name)) found.set(name, value.trim());
  }
}
