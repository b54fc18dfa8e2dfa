import { isUtf8 } from 'node:buffer';
import iconv from 'iconv-lite';
import type { Steps } from '../../domain/in-turns.ts';
import { createByteCollector } from '../../net/byte-collector.ts';
import { charsetInDocument } from './charset-prescan.ts';
import { guessCharset } from './guess-charset.ts';

/** Text of a page, in UTF-8. */
export interface DecodedText {
  /**
   * Without a byte order mark; broken sequences are U+FFFD. Undefined when it would be longer than
   * it may be.
   */
  readonly utf8: Uint8Array | undefined;
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

/** A step of this length takes at most a millisecond in the slowest character set. */
const STEP_BYTES = 16 * 1_024;

/**
 * Converts the bytes of a text to UTF-8, in steps. In the order of the WHATWG standards, the
 * character set is that of a byte order mark, of the HTTP header, or of the document itself. The
 * document has it in `meta` (HTML) or its declaration (XML). Otherwise it is UTF-8 when the bytes
 * are valid UTF-8, else a guess. Unknown names count as absent.
 */
export function* decodeText(
  bytes: Uint8Array,
  hints: {
    readonly headerCharset: string | undefined;
    readonly mediaType: string;
    /** Largest length of the result. */
    readonly maxBytes: number;
    /** Of the address that sent it. */
    readonly hostname?: string | undefined;
  },
): Steps<DecodedText> {
  const charset =
    byteOrderMark(bytes) ??
    resolveCharset(hints.headerCharset) ??
    resolveCharset(charsetInDocument(bytes, hints.mediaType)) ??
    (yield* charsetOfBytes(bytes, hints.hostname));
  return { utf8: yield* toUtf8(bytes, charset, hints.maxBytes), charset };
}

/** Characters of Japanese begin so in ISO-2022-JP, whose bytes are ASCII. */
const ISO_2022_JP = ['\x1b$B', '\x1b$@'];
const ISO_2022_JP_BYTES = 64 * 1_024;

/** The character set of a text that names none. */
function* charsetOfBytes(bytes: Uint8Array, hostname: string | undefined): Steps<string> {
  if (!isUtf8(bytes)) return yield* guessCharset(bytes, hostname);
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const searched = start.subarray(0, ISO_2022_JP_BYTES);
  return ISO_2022_JP.some((escape) => searched.includes(escape)) ? 'iso-2022-jp' : 'utf-8';
}

/**
 * The standard's name for a label such as `latin1` or `sjis`; undefined for a label that the
 * standard does not know or browsers refuse.
 */
function resolveCharset(label: string | undefined): string | undefined {
  if (label === undefined || label === '') return undefined;
  try {
    const { encoding } = new TextDecoder(label.trim());
    return encoding === 'x-user-defined' ? 'windows-1252' : encoding;
  } catch {
    // A RangeError: the label is unknown.
    return undefined;
  }
}

/** The character set that the first bytes of a text tell. */
export function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8';
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return undefined;
}

function* toUtf8(
  bytes: Uint8Array,
  charset: string,
  maxBytes: number,
): Steps<Uint8Array | undefined> {
  if (charset === 'utf-8' && isUtf8(bytes)) {
    return byteOrderMark(bytes) === 'utf-8' ? bytes.subarray(3) : bytes;
  }
  const decoder = createDecoder(charset);
  const converted = createByteCollector(maxBytes);
  converted.reserve(bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; at += STEP_BYTES) {
    if (at > 0) yield;
    const text = decoder.write(bytes.subarray(at, at + STEP_BYTES));
    if (!converted.push(Buffer.from(text))) return undefined;
  }
  const rest = Buffer.from(decoder.end());
  return converted.push(rest) ? converted.take() : undefined;
}

/** A decoder that keeps what is incomplete at the end of a piece for the next one. */
function createDecoder(charset: string): {
  readonly write: (piece: Uint8Array) => string;
  readonly end: () => string;
} {
  const byIconv = BY_ICONV[charset];
  if (byIconv === undefined) {
    const decoder = new TextDecoder(charset);
    return {
      write: (piece) => decoder.decode(piece, { stream: true }),
      end: () => decoder.decode(),
    };
  }
  const decoder = iconv.getDecoder(byIconv);
  return {
    write: ({ buffer, byteOffset, byteLength }) =>
      decoder.write(Buffer.from(buffer, byteOffset, byteLength)),
    end: () => decoder.end() ?? '',
  };
}
