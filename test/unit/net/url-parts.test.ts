import { expect, test } from 'vitest';
import {
  bareHostname,
  basicAuthorization,
  effectivePort,
  pathAndQuery,
} from '../../../src/net/url-parts.ts';

test.each([
  ['http://example.com/', 'example.com', 80],
  ['https://example.com/', 'example.com', 443],
  ['https://example.com:8443/', 'example.com', 8443],
  ['http://[::1]/', '::1', 80],
  ['http://[fd00::1]:3000/', 'fd00::1', 3000],
])('%s leads to %s, port %i', (text, hostname, port) => {
  const url = new URL(text);
  expect([bareHostname(url), effectivePort(url)]).toEqual([hostname, port]);
});

test.each([
  ['http://user:secret@host/', 'user:secret'],
  ['http://user@host/', 'user:'],
  ['http://:secret@host/', ':secret'],
  ['http://us%C3%A9r:p%40ss@host/', 'usér:p@ss'],
  // A stray percent sign stands for itself.
  ['http://100%:50%@host/', '100%:50%'],
])('the credentials in %s are %s', (text, credentials) => {
  const value = basicAuthorization(new URL(text)) ?? '';
  expect(value).toMatch(/^Basic /);
  expect(Buffer.from(value.slice(6), 'base64').toString()).toBe(credentials);
});

test('a URL without credentials asks for no authorization', () => {
  expect(basicAuthorization(new URL('http://host/'))).toBeUndefined();
});

test.each([
  ['http://h/echo', '/echo'],
  ['http://h/echo?', '/echo?'],
  ['http://h/echo?#a?', '/echo?'],
  ['http://h/echo#a?', '/echo'],
  ['http://h?', '/?'],
  ['http://h/echo?a=1#b', '/echo?a=1'],
])('%s is requested as %s', (text, target) => {
  expect(pathAndQuery(new URL(text))).toBe(target);
});
