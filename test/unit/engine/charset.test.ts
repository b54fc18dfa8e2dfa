import { gzipSync } from 'node:zlib';
import iconv from 'iconv-lite';
import { describe, expect, test } from 'vitest';
import { pageBody } from '../../../src/engine/text/page-body.ts';
import { shownBody } from '../../support/steps.ts';

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
  const page = shownBody(bytes, contentType);
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
    // The guess would be another one.
    [`<style>${'a { b: c } '.repeat(5_000)}</style><meta charset="euc-jp">`, 'euc-jp', '日本語'],
    [`<script>${'let a; '.repeat(2_000)}</script><meta charset=windows-1252>`, 'cp1252', '£5'],
  ])('%s', (head, encoding, text) => {
    const page = html(text, head);
    expect(decoded(iconv.encode(page, encoding), 'text/html')).toBe(page);
  });

  test('behind a script that writes a body', () => {
    const head = `<script>write('<body >')</script><meta charset="euc-jp">`;
    const page = html('日本語', head);
    expect(decoded(iconv.encode(page, 'euc-jp'), 'text/html')).toBe(page);
  });

  test('not behind the head', () => {
    const style = `<style>${'a { b: c } '.repeat(400)}</style>`;
    const page = html('日本語', `${style}</head><body><pre><meta charset="big5"></pre>`);
    expect(decoded(Buffer.from(page), 'text/html')).toBe(page);
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

// Each row is decoded like this by Chromium's detector, too.
describe('named nowhere', () => {
  test.each([
    ['windows-1251', 'a.ru', 'Новости дня: погода в Москве, курсы валют и расписание электричек'],
    ['windows-1251', 'a.com', 'Новости дня: погода в Москве, курсы валют и расписание электричек'],
    ['windows-1251', 'a.ua', 'Новини дня: погода в Києві, курси валют та розклад електричок'],
    ['windows-1251', 'a.bg', 'Новините на деня: времето в София, валутни курсове и разписание'],
    ['koi8-r', 'a.ru', 'Новости дня: погода в Москве, курсы валют и расписание электричек'],
    ['iso-8859-5', 'a.ru', 'Новости дня: погода в Москве, курсы валют и расписание электричек'],
    ['shift_jis', 'a.jp', '今日のニュース：東京の天気、為替レート、電車の時刻表をお知らせします。'],
    [
      'shift_jis',
      'a.com',
      '今日のニュース：東京の天気、為替レート、電車の時刻表をお知らせします。',
    ],
    ['euc-jp', 'a.jp', '今日のニュース：東京の天気、為替レート、電車の時刻表をお知らせします。'],
    ['euc-jp', 'a.com', '今日のニュース：東京の天気、為替レート、電車の時刻表をお知らせします。'],
    ['gbk', 'a.cn', '今日新闻：北京的天气、汇率和火车时刻表，以及其他重要的消息。'],
    ['gbk', 'a.com', '今日新闻：北京的天气、汇率和火车时刻表，以及其他重要的消息。'],
    ['big5', 'a.tw', '今日新聞：臺北的天氣、匯率和火車時刻表，以及其他重要的消息。'],
    ['big5', 'a.com', '今日新聞：臺北的天氣、匯率和火車時刻表，以及其他重要的消息。'],
    ['euc-kr', 'a.kr', '오늘의 뉴스: 서울의 날씨와 환율, 그리고 기차 시간표를 알려 드립니다.'],
    ['euc-kr', 'a.com', '오늘의 뉴스: 서울의 날씨와 환율, 그리고 기차 시간표를 알려 드립니다.'],
    ['windows-1253', 'a.gr', 'Τα νέα της ημέρας: ο καιρός στην πόλη και τα δρομολόγια των τρένων'],
    [
      'windows-1254',
      'a.tr',
      'Günün haberleri: İstanbul hava durumu, döviz kurları ve tren çizelgeleri şöyle',
    ],
    ['windows-1255', 'a.il', 'חדשות היום: מזג האוויר בירושלים, שערי החליפין ולוח הזמנים של הרכבות'],
    ['windows-1256', 'a.sa', 'أخبار اليوم: الطقس في الرياض وأسعار الصرف ومواعيد القطارات'],
    ['windows-874', 'a.th', 'ข่าววันนี้ สภาพอากาศในกรุงเทพ อัตราแลกเปลี่ยน และตารางรถไฟ'],
    [
      'iso-8859-2',
      'a.pl',
      'Wiadomości dnia: pogoda w Łodzi, kursy walut i rozkład jazdy pociągów, także jutro',
    ],
    [
      'windows-1250',
      'a.cz',
      'Zprávy dne: počasí v Praze, kurzy měn a jízdní řády vlaků, příště více',
    ],
    [
      'windows-1252',
      'a.de',
      'Nachrichten: Wetter in München, Börsenkurse und Fahrpläne der Züge für heute',
    ],
    [
      'windows-1252',
      'a.fr',
      'Les actualités : la météo à Orléans, les cours et les horaires des trains d’été',
    ],
    ['windows-1252', '127.0.0.1', 'Grüße “à l’été” – naïve café'],
  ])('%s from %s', (charset, hostname, text) => {
    const page = html(text);
    const bytes = iconv.encode(page, charset);
    expect(Buffer.from(shownBody(bytes, 'text/html', hostname).body).toString()).toBe(page);
    // Scripts and styles come first in many pages.
    const late = html(text, `<script>${'let a = 1; '.repeat(20_000)}</script>`);
    const shown = shownBody(iconv.encode(late, charset), 'text/html', hostname);
    expect(Buffer.from(shown.body).toString()).toBe(late);
  });

  test('iso-2022-jp, whose bytes are ASCII', () => {
    const bytes = Buffer.from('<p>\x1b$BF|K\\8l\x1b(B', 'latin1');
    expect(decoded(bytes, 'text/html')).toBe('<p>日本語');
  });

  test('UTF-8, where it is valid', () => {
    expect(decoded(Buffer.from(html(JAPANESE)), 'text/html')).toBe(html(JAPANESE));
  });

  // Browsers take these for another character set.
  test.each<[string, readonly (string | number[])[], string]>([
    ['with a broken character', [RUSSIAN, [0xd0], RUSSIAN], `${RUSSIAN}\ufffd${RUSSIAN}`],
    ['that is cut within a character', [JAPANESE, [0xe3, 0x81]], `${JAPANESE}\ufffd`],
    ['of one character, and cut', ['é', [0xc3]], 'é\ufffd'],
    [
      'that is broken far behind',
      [WESTERN.repeat(2_000), [0xff], WESTERN],
      `${WESTERN.repeat(2_000)}\ufffd${WESTERN}`,
    ],
  ])('UTF-8 %s', (_, parts, text) => {
    const bytes = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
    expect(decoded(bytes, 'text/html')).toBe(text);
  });

  test.each(['a.RU', 'a.ü', '.', 'a.', '1.2.3.4', '::1', `a.${'b'.repeat(300)}`])(
    'from a host named %s',
    (hostname) => {
      const bytes = iconv.encode(html(RUSSIAN), 'windows-1251');
      expect(shownBody(bytes, 'text/html', hostname).isText).toBe(true);
    },
  );
});

// A long text is decoded in pieces.
describe('characters that a piece ends within', () => {
  test.each([
    ['shift_jis', JAPANESE],
    ['euc-jp', JAPANESE.replace('ｶﾅ', '')],
    ['gb18030', `${CHINESE}𠀀€`],
    ['big5', TRADITIONAL],
    ['euc-kr', KOREAN],
    ['windows-1251', RUSSIAN],
    ['windows-1252', WESTERN],
    ['utf-16le', `${JAPANESE}😀`],
    ['utf-16be', `${JAPANESE}😀`],
    ['utf-8', `${JAPANESE}😀`],
  ])('%s', (charset, text) => {
    for (let shift = 0; shift < 4; shift += 1) {
      const page = html('a'.repeat(shift) + text.repeat(2_000));
      const broken = Buffer.concat([iconv.encode(page, charset), Buffer.of(0xff)]);
      expect(decoded(broken, `text/html; charset=${charset}`).slice(0, -1)).toBe(page);
    }
  });

  test('a text that would be longer in UTF-8 than it may be is not decoded to its end', () => {
    const steps = pageBody(Buffer.alloc(1024 * 1024, 0xe9), 'text/html; charset=iso-8859-1', {
      maxBytes: 1.5 * 1024 * 1024,
    });
    let taken = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) taken += 1;
    expect([step.value.body, taken < 52]).toEqual([undefined, true]);
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
    ['text/html', png, false, 'text/html'],
    ['text/xml; charset=utf-8', gzipSync('<urlset/>'), false, 'text/xml; charset=utf-8'],
    ['text/html; charset=utf-8', Buffer.from('%PDF-1.7'), false, 'text/html; charset=utf-8'],
    ['application/json', Buffer.from('PK\x03\x04'), false, 'application/json'],
    ['text/html', Buffer.of(0xff, 0xd8, 0xff, 0xe0), false, 'text/html'],
    ['text/html', Buffer.from('PK is a name'), true, 'text/html; charset=utf-8'],
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
    const page = shownBody(bytes, contentType);
    expect([page.isText, page.contentType]).toEqual([isText, expected]);
    if (!isText) expect(page.body).toBe(bytes);
  });
});
