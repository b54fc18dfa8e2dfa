import iconv from 'iconv-lite';
import { describe, expect, test } from 'vitest';
import { pageBody } from '../../../src/engine/text/page-body.ts';

const JAPANESE = '日本語のページ。カタカナ、ひらがな、漢字、ｶﾅ、①②～';
const CHINESE = '中文页面：简体字、標點符號「」……';
const TRADITIONAL = '繁體中文網頁：標點符號「」';
const KOREAN = '한국어 페이지: 가나다라, 똠방각하, 펲시';
const RUSSIAN = 'Русская страница: ёж, Ъъ — «кавычки»';
const WESTERN = 'Grüße “à l’été” – naïve café €5';

function html(text: string, head = ''): string {
  return `<!doctype html><html><head>${head}<title>t</title></head><body><p>${text}</p></body></html>`;
}

function decoded(bytes: Uint8Array, contentType?: string): string {
  const page = pageBody(bytes, contentType);
  expect(page.isText).toBe(true);
  expect(page.contentType).toMatch(/; charset=utf-8$/);
  return Buffer.from(page.body).toString('utf8');
}

describe('named in the header', () => {
  test.each([
    ['shift_jis', 'shift_jis', JAPANESE],
    ['x-sjis', 'shift_jis', JAPANESE],
    ['euc-jp', 'euc-jp', JAPANESE.replace('ｶﾅ', '')],
    ['gb18030', 'gb18030', `${CHINESE}𠀀€`],
    ['gb2312', 'gb18030', CHINESE],
    ['GBK', 'gb18030', CHINESE],
    ['big5', 'big5', TRADITIONAL],
    ['euc-kr', 'cp949', KOREAN],
    ['ks_c_5601-1987', 'cp949', KOREAN],
    ['windows-1251', 'windows-1251', RUSSIAN],
    ['koi8-r', 'koi8-r', RUSSIAN.replace('—', '-').replace(/[«»]/g, '"')],
    ['iso-8859-5', 'iso-8859-5', RUSSIAN.replace('—', '-').replace(/[«»]/g, '"')],
    ['iso-8859-1', 'windows-1252', WESTERN],
    ['us-ascii', 'windows-1252', WESTERN],
    ['windows-1250', 'windows-1250', 'Příliš žluťoučký kůň'],
    ['iso-8859-2', 'iso-8859-2', 'Zażółć gęślą jaźń'],
    ['windows-1253', 'windows-1253', 'Ελληνικά'],
    ['windows-1254', 'windows-1254', 'İstanbul ğüşöç'],
    ['windows-1255', 'windows-1255', 'עברית'],
    ['windows-1256', 'windows-1256', 'العربية'],
    ['windows-874', 'windows-874', 'ภาษาไทย'],
    ['utf-16le', 'utf-16le', JAPANESE],
    ['utf-16be', 'utf-16be', JAPANESE],
    ['utf-8', 'utf-8', `${JAPANESE}😀`],
  ])('%s', (label, encoding, text) => {
    const bytes = iconv.encode(html(text), encoding);
    expect(decoded(bytes, `text/html; charset=${label}`)).toBe(html(text));
    expect(decoded(bytes, `text/html;charset="${label}"`)).toBe(html(text));
  });

  test('iso-2022-jp', () => {
    const bytes = Buffer.from('\x1b$BF|K\\8l\x1b(B', 'latin1');
    expect(decoded(bytes, 'text/plain; charset=iso-2022-jp')).toBe('日本語');
  });
});

describe('named in the document', () => {
  test.each([
    ['<meta charset="shift_jis">', 'shift_jis', JAPANESE],
    ['<META CHARSET=Windows-1251 />', 'windows-1251', RUSSIAN],
    ['<meta http-equiv="Content-Type" content="text/html; charset=gb2312">', 'gb18030', CHINESE],
    ["<meta content='text/html;charset=euc-kr' http-equiv=content-type>", 'cp949', KOREAN],
    ['<!-- <meta charset="big5"> --><meta charset="koi8-r">', 'koi8-r', 'Русская'],
    [
      '<meta name="description" content="charset=big5"><meta charset="windows-1251">',
      'windows-1251',
      RUSSIAN,
    ],
    ['<meta charset="no-such-thing">', 'utf-8', JAPANESE],
    ['<meta charset="utf-16">', 'utf-8', JAPANESE],
    [`<!-- ${'x'.repeat(2_000)} --><meta charset="euc-jp">`, 'euc-jp', '日本語'],
  ])('%s', (head, encoding, text) => {
    const page = html(text, head);
    expect(decoded(iconv.encode(page, encoding), 'text/html')).toBe(page);
  });

  test('XML', () => {
    const xml = `<?xml version="1.0" encoding="windows-1251"?><a>${RUSSIAN}</a>`;
    expect(decoded(iconv.encode(xml, 'windows-1251'), 'application/rss+xml')).toBe(xml);
    const wide = `<?xml version="1.0" encoding="utf-16"?><a>${JAPANESE}</a>`;
    expect(decoded(iconv.encode(wide, 'utf-16be', { addBOM: false }), 'text/xml')).toBe(wide);
  });
});

describe('in doubt', () => {
  test.each<[encoding: string, contentType: string | undefined, why: string]>([
    ['utf-8', 'text/html; charset=windows-1251', 'the mark beats the header'],
    ['utf-16le', 'text/html; charset=utf-8', 'the mark beats the header'],
    ['utf-16be', 'text/html', 'the mark beats the document'],
    ['utf-16le', 'text/plain', 'zeros are no sign of a binary file then'],
    ['utf-16le', undefined, 'even without a type'],
  ])('a byte order mark of %s in %s: %s', (encoding, contentType) => {
    const page = html(JAPANESE, '<meta charset="big5">');
    expect(decoded(iconv.encode(page, encoding, { addBOM: true }), contentType)).toBe(page);
  });

  test('the header beats the document, even when it is wrong, as in browsers', () => {
    const page = html('é', '<meta charset="utf-8">');
    expect(decoded(Buffer.from(page), 'text/html; charset=iso-8859-1')).toBe(
      html('Ã©', '<meta charset="utf-8">'),
    );
  });

  test('an unknown name in the header counts as none', () => {
    const page = html(RUSSIAN, '<meta charset="windows-1251">');
    expect(decoded(iconv.encode(page, 'windows-1251'), 'text/html; charset=no-such')).toBe(page);
  });

  test('valid UTF-8 is UTF-8, all else windows-1252', () => {
    expect(decoded(Buffer.from(html(JAPANESE)), 'text/html')).toBe(html(JAPANESE));
    expect(decoded(iconv.encode(html(WESTERN), 'windows-1252'), 'text/html')).toBe(html(WESTERN));
  });

  test.each([
    ['utf-8', [0x61, 0xff, 0x62, 0xe2, 0x82, 0x63], 'a\ufffdb\ufffdc'],
    ['utf-8', [0x61, 0xf0, 0x9f, 0x98], 'a\ufffd'],
    ['utf-8', [0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'],
    ['utf-16le', [0x61, 0x00, 0x00, 0xd8, 0x62, 0x00], 'a\ufffdb'],
    ['shift_jis', [0x61, 0xfd, 0x62], 'a\ufffdb'],
    ['euc-jp', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['gb18030', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['big5', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['euc-kr', [0x61, 0xff, 0x62], 'a\ufffdb'],
    ['windows-1252', [0x61, 0x81, 0x80], 'a\u0081€'],
  ])('broken %s %j', (label, bytes, text) => {
    expect(decoded(Buffer.from(bytes), `text/html; charset=${label}`)).toBe(text);
  });
});

describe('text or not', () => {
  const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d]);

  test.each([
    ['image/png', png, false, 'image/png'],
    ['application/pdf', Buffer.from('%PDF-1.7'), false, 'application/pdf'],
    ['application/octet-stream', Buffer.from('abc'), false, 'application/octet-stream'],
    [
      'application/vnd.api+json',
      Buffer.from('{}'),
      true,
      'application/vnd.api+json; charset=utf-8',
    ],
    ['application/vnd.ms-excel', Buffer.from('x'), false, 'application/vnd.ms-excel'],
    ['image/svg+xml', Buffer.from('<svg/>'), true, 'image/svg+xml; charset=utf-8'],
    ['text/plain', png, false, 'text/plain'],
    ['text/html', png, true, 'text/html; charset=utf-8'],
    [
      'Text/HTML; Charset=UTF-8; profile=x',
      Buffer.from('a'),
      true,
      'text/html; profile=x; charset=utf-8',
    ],
    [
      'application/x-unheard-of',
      Buffer.from('plain'),
      true,
      'application/x-unheard-of; charset=utf-8',
    ],
    ['application/x-unheard-of', png, false, 'application/x-unheard-of'],
    [undefined, png, false, 'application/octet-stream'],
    [undefined, Buffer.from('  <!DOCTYPE html><p>'), true, 'text/html; charset=utf-8'],
    [undefined, Buffer.from('<?xml version="1.0"?><a/>'), true, 'text/xml; charset=utf-8'],
    [undefined, Buffer.from('hello'), true, 'text/plain; charset=utf-8'],
    ['nonsense', Buffer.from('hello'), true, 'text/plain; charset=utf-8'],
    ['', Buffer.alloc(0), true, 'text/plain; charset=utf-8'],
  ])('%s', (contentType, bytes, isText, expected) => {
    const page = pageBody(bytes, contentType);
    expect([page.isText, page.contentType]).toEqual([isText, expected]);
    if (!isText) expect(page.body).toBe(bytes);
  });
});
