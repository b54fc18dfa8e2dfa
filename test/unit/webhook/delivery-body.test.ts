import { describe, expect, test } from 'vitest';
import { contentPieces } from '../../../src/domain/result-fields.ts';
import { type DeliverySource, deliveryBody } from '../../../src/webhook/delivery-body.ts';

function bodyOf(overrides: Partial<DeliverySource>) {
  const content = deliveryBody({
    format: 'html',
    cbStatus: 200,
    originalStatus: 404,
    url: 'https://example.com/ü',
    rid: '69f0c0de0123456789abcdef',
    pushedUrl: 'https://example.com/to',
    contentType: 'text/html; charset=utf-8',
    body: Buffer.from('<p>日本語</p>'),
    isText: true,
    details: {},
    ...overrides,
  });
  const body = Buffer.concat([...contentPieces(content)]);
  return { contentType: content.contentType, text: body.toString('utf8'), bytes: [...body] };
}

const binary = {
  body: Uint8Array.of(0xff, 0xd8, 0, 0x80),
  isText: false,
  contentType: 'image/jpeg',
};

describe('html', () => {
  test('is the page as text/plain', () => {
    expect(bodyOf({})).toMatchObject({
      contentType: 'text/plain; charset=utf-8',
      text: '<p>日本語</p>',
    });
  });

  test('keeps the bytes and the type of what is not text', () => {
    expect(bodyOf(binary)).toMatchObject({
      contentType: 'image/jpeg',
      bytes: [0xff, 0xd8, 0, 0x80],
    });
    expect(bodyOf({ ...binary, contentType: '' }).contentType).toBe('application/octet-stream');
  });
});

test('md is text/markdown', () => {
  expect(bodyOf({ format: 'md', body: Buffer.from('# 日') })).toMatchObject({
    contentType: 'text/markdown; charset=utf-8',
    text: '# 日',
  });
});

describe('json', () => {
  test('holds the metadata and the page', () => {
    const { contentType, text } = bodyOf({ format: 'json' });
    expect(contentType).toBe('gzip/json');
    expect(JSON.parse(text)).toEqual({
      cb_status: 200,
      pc_status: 200,
      original_status: 404,
      rid: '69f0c0de0123456789abcdef',
      url: 'https://example.com/ü',
      pushed_url: 'https://example.com/to',
      body: '<p>日本語</p>',
    });
  });

  test('what is not text is base64 and says so', () => {
    const { text } = bodyOf({ format: 'json', ...binary });
    expect(JSON.parse(text)).toMatchObject({ body: '/9gAgA==', body_encoding: 'base64' });
  });

  test('has the details, none of which replaces a field', () => {
    const { text } = bodyOf({
      format: 'json',
      details: {
        screenshotUrl: 'https://q/1',
        originalHeaders: { status: '999', server: 'nginx' },
      },
    });
    expect(JSON.parse(text)).toMatchObject({
      screenshot_url: 'https://q/1',
      original_status: 404,
      original_server: 'nginx',
      body: '<p>日本語</p>',
    });
  });

  test('a part of a buffer is not taken for the whole', () => {
    const part = new Uint8Array(Buffer.from('xxpagexx').buffer.slice(0)).fill(120);
    part.set(Buffer.from('page'), 2);
    const { text } = bodyOf({ format: 'json', body: part.subarray(2, 6) });
    expect(JSON.parse(text)).toMatchObject({ body: 'page' });
  });

  test('is indented when pretty', () => {
    expect(bodyOf({ format: 'json', pretty: true }).text).toContain('\n  "rid":');
    expect(bodyOf({ format: 'json' }).text).not.toContain('\n');
  });

  test('an empty page is an empty string', () => {
    expect(JSON.parse(bodyOf({ format: 'json', body: new Uint8Array() }).text)).toMatchObject({
      body: '',
    });
  });
});
