/** The standard asks for 1,024 bytes; some pages have more before their `meta`, and browsers find it all the same. */
const PRESCAN_BYTES = 4_096;

/**
 * The character set a document names in its own first bytes: the `meta` of HTML or the declaration of XML; undefined without one. A
 * `meta` that claims UTF-16 or `x-user-defined` cannot be right and means UTF-8 and windows-1252, as the HTML standard has it.
 */
export function charsetInDocument(bytes: Uint8Array, mediaType: string): string | undefined {
  const utf16 = utf16OfDeclaration(bytes);
  if (utf16 !== undefined) return utf16;
  const head = Buffer.from(bytes.subarray(0, PRESCAN_BYTES)).toString('latin1');
  const declared = /^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([^"'>]{1,40})["']/i.exec(head)?.[1];
  if (!mediaType.includes('html')) return declared;
  return metaCharset(head.replaceAll(/<!--[\s\S]*?-->/g, '')) ?? declared;
}

// `<?` in UTF-16: what follows can only be read as that.
function utf16OfDeclaration(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 4)).toString('hex');
  if (start === '3c003f00') return 'utf-16le';
  if (start === '003c003f') return 'utf-16be';
  return undefined;
}

function metaCharset(head: string): string | undefined {
  for (const [tag] of head.matchAll(/<meta[\s/][^>]*/gi)) {
    // Also finds the one within `content="text/html; charset=..."`, which counts only beside `http-equiv`.
    const match = /(content\s*=\s*["']?[^"'>]*)?charset\s*=\s*["']?\s*([^\s"'/;>]{1,40})/i.exec(
      tag,
    );
    const [, inContent, label] = match ?? [];
    if (label === undefined) continue;
    if (inContent !== undefined && !/http-equiv\s*=\s*["']?\s*content-type/i.test(tag)) continue;
    if (/^utf-?16/i.test(label)) return 'utf-8';
    if (/^x-user-defined$/i.test(label)) return 'windows-1252';
    return label;
  }
  return undefined;
}
