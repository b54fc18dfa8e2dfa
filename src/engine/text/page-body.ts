import type { Steps } from '../../domain/in-turns.ts';
import type { Page } from '../engine.ts';
import { decodeText } from './charset.ts';

const TEXT_TYPES =
  /^(?:text\/.*|message\/.*|application\/(?:json|xml|xhtml\+xml|javascript|x-javascript|ecmascript|rtf|sql|graphql|x-www-form-urlencoded|x-ndjson|ndjson|yaml|x-yaml|toml|x-sh|x-httpd-php)|[^;]+\+(?:json|xml|yaml))$/;
const BINARY_TYPES =
  /^(?:image|audio|video|font)\/|^application\/(?:pdf|zip|gzip|x-gzip|x-tar|x-7z-compressed|x-rar-compressed|vnd\.rar|octet-stream|wasm|msword|vnd\..*|java-archive|x-protobuf|protobuf)$/;

/**
 * Longer types and parameters have no meaning, and they must fit into the headers of a delivery.
 */
const MAX_TYPE = 128;
const MAX_PARAMETER = 256;
const MAX_PARAMETERS = 32;

/** How files begin that are no text, whatever their type says: gzip, zip, PNG, JPEG and PDF. */
const BINARY_BEGINNINGS = [
  '\x1f\x8b\x08',
  'PK\x03\x04',
  '\x89PNG\r\n',
  '\xff\xd8\xff',
  '%PDF-',
] as const;

/** Bytes that decide between text and binary (MIME Sniffing Standard, 7). */
const SNIFF_BYTES = 1_445;

/** A body as it is delivered. */
export interface PageBody extends Pick<Page, 'contentType' | 'isText'> {
  /** Undefined when it became longer than it may be: text may, in UTF-8. */
  readonly body: Uint8Array | undefined;
}

/**
 * A body as it is delivered, in steps: text in UTF-8 without a byte order mark, everything else as it
 * arrived. The media type decides which it is, unless the body begins as a file of another kind. When
 * the type is missing, unknown or `text/plain`, the "binary data bytes" of the MIME Sniffing Standard
 * decide. Without a type, HTML is recognised by its beginning.
 */
export function* pageBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  options: { readonly maxBytes: number; readonly hostname?: string | undefined },
): Steps<PageBody> {
  const type = pageType(bytes, contentType);
  if (!type.isText) return { ...type, body: bytes };
  const { headerCharset, mediaType, ...shown } = type;
  const { utf8 } = yield* decodeText(bytes, { headerCharset, mediaType, ...options });
  return { ...shown, body: utf8 };
}

/** The media type that a body is delivered with. */
export function pageType(bytes: Uint8Array, contentType: string | undefined) {
  const { type, parameters, charset } = parseContentType(contentType);
  if (!isText(bytes, type, charset)) {
    return { contentType: binaryType(contentType, type), isText: false } as const;
  }
  const mediaType = type === '' ? sniffText(bytes) : type;
  const others = parameters.map((parameter) => `; ${parameter}`).join('');
  return {
    contentType: `${mediaType}${others}; charset=utf-8`,
    isText: true,
    headerCharset: charset,
    mediaType,
  } as const;
}

function binaryType(given: string | undefined, type: string): string {
  if (given !== undefined && given.length <= MAX_TYPE + MAX_PARAMETER) return given;
  return type === '' ? 'application/octet-stream' : type;
}

interface ContentType {
  /** Lower case, empty when the site sent no type. */
  readonly type: string;
  /** All except `charset`, as the site sent them. */
  readonly parameters: readonly string[];
  readonly charset: string | undefined;
}

// Uses no regular expression on the whole value, because a site may send 64 KiB of it.
function parseContentType(value: string | undefined): ContentType {
  const [essence = '', ...rest] = (value ?? '')
    .split(';', MAX_PARAMETERS)
    .map((part) => part.trim());
  const type = essence.toLowerCase();
  const named = rest.map((part) => {
    const [name = '', ...values] = part.split('=');
    return { part, name: name.trim().toLowerCase(), value: values.join('=').trim() };
  });
  return {
    type:
      type.length <= MAX_TYPE && /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/.test(type)
        ? type
        : '',
    parameters: named
      .filter(({ part, name }) => part !== '' && part.length <= MAX_PARAMETER && name !== 'charset')
      .map(({ part }) => part)
      .slice(0, 8),
    charset: named
      .filter(({ name, part }) => name === 'charset' && part.includes('='))
      .map((each) => unquoted(each.value))
      .find((found) => !found.includes('"')),
  };
}

function unquoted(value: string): string {
  const start = value.startsWith('"') ? 1 : 0;
  return value.slice(start, value.length > start && value.endsWith('"') ? -1 : undefined);
}

function isText(bytes: Uint8Array, type: string, charset: string | undefined): boolean {
  if (type === 'image/svg+xml') return true;
  if (BINARY_TYPES.test(type) && !/\+(?:json|xml|yaml)$/.test(type)) return false;
  const start = Buffer.from(bytes.subarray(0, 8)).toString('latin1');
  if (BINARY_BEGINNINGS.some((beginning) => start.startsWith(beginning))) return false;
  if (TEXT_TYPES.test(type) && type !== 'text/plain') return true;
  return isUtf16(bytes, charset) || !hasBinaryBytes(bytes);
}

function isUtf16(bytes: Uint8Array, charset: string | undefined): boolean {
  const mark = ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
  return mark === 0xfffe || mark === 0xfeff || /^(?:utf-16|ucs-2|unicode)/i.test(charset ?? '');
}

// Control characters that occur in no text: all except tab, line breaks, form feed, and escape,
// which ISO-2022-JP needs.
function hasBinaryBytes(bytes: Uint8Array): boolean {
  return bytes
    .subarray(0, SNIFF_BYTES)
    .some(
      (byte) =>
        byte <= 0x08 ||
        byte === 0x0b ||
        (byte >= 0x0e && byte <= 0x1a) ||
        (byte >= 0x1c && byte <= 0x1f),
    );
}

function sniffText(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, SNIFF_BYTES)).toString('latin1').trimStart();
  if (/^(?:\xef\xbb\xbf)?\s*<\?xml/i.test(start)) return 'text/xml';
  return /^(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p|meta|!--)[\s>]/i.test(
    start,
  )
    ? 'text/html'
    : 'text/plain';
}
