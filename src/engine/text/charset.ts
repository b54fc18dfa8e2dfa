import { isUtf8 } from 'node:buffer';
import iconv from 'iconv-lite';
import { charsetInDocument } from './charset-prescan.ts';

/** Text of a page, in UTF-8. */
export interface DecodedText {
  /** Without a byte order mark; broken sequences are U+FFFD. */
  readonly utf8: Uint8Array;
  /** The character set that the bytes were read as, a name of the WHATWG Encoding Standard. */
  readonly charset: string;
}

/**
 * Character sets for which Node's decoder differs from the standard, or lacks extensions that pages
 * use. iconv-lite has them.
 */
const BY_ICONV: Readonly<Record<string, string>> = {
  big5: 'big5',
  'euc-jp': 'euc-jp',
  'euc-kr': 'cp949',
  gb18030: 'gb18030',
  gbk: 'gb18030',
  shift_jis: 'shift_jis',
};

/**
 * Converts the bytes of a text to UTF-8. In the order of the WHATWG standards, the character set is
 * that of a byte order mark, of the HTTP header, or of the document itself (`meta` in HTML, the
 * declaration of XML), else UTF-8 when the bytes are valid UTF-8, else windows-1252. Unknown names
 * count as absent.
 */
export function decodeText(
  bytes: Uint8Array,
  hints: { readonly headerCharset: string | undefined; readonly mediaType: string },
): DecodedText {
  const charset =
    byteOrderMark(bytes) ??
    resolveCharset(hints.headerCharset) ??
    resolveCharset(charsetInDocument(bytes, hints.mediaType)) ??
    (isUtf8(bytes) ? 'utf-8' : 'windows-1252');
  return { utf8: toUtf8(bytes, charset), charset };
}

/**
 * The standard's name for a label such as `latin1` or `sjis`; undefined for a label that the
 * standard does not know or browsers refuse.
 */
export function resolveCharset(label: string | undefined): string | undefined {
  if (label === undefined || label === '') return undefined;
  try {
    const { encoding } = new TextDecoder(label.trim());
    return encoding === 'x-user-defined' ? 'windows-1252' : encoding;
  } catch {
    // A RangeError: the label is unknown.
    return undefined;
  }
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return undefined;
}

function toUtf8(bytes: Uint8Array, charset: string): Uint8Array {
  if (charset === 'utf-8' && isUtf8(bytes)) {
    return byteOrderMark(bytes) === 'utf-8' ? bytes.subarray(3) : bytes;
  }
  const byIconv = BY_ICONV[charset];
  const text =
    byIconv === undefined
      ? new TextDecoder(charset).decode(bytes)
      : iconv.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), byIconv);
  return Buffer.from(text, 'utf8');
}
