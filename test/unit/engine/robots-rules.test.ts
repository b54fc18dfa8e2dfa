import { describe, expect, test } from 'vitest';
import { parseRobots } from '../../../src/engine/politeness/robots-rules.ts';
import { atOnce } from '../../support/steps.ts';

function allows(text: string, path: string): boolean {
  return atOnce(parseRobots(text, 'QueuedCrawler')).allows(new URL(path, 'https://site.test/'));
}

describe('the longest matching rule decides (RFC 9309, 2.2.2)', () => {
  test.each([
    ['Disallow: /a', '/a', false, 'itself'],
    ['Disallow: /a', '/abc', false, 'a prefix'],
    ['Disallow: /a', '/b', true, 'elsewhere'],
    ['Disallow: /a', '/A', true, 'case counts'],
    ['Disallow:', '/a', true, 'an empty one says nothing'],
    ['Disallow: /\nAllow: /p', '/page', true, 'the longer allows'],
    ['Allow: /p\nDisallow: /page', '/page', false, 'the longer disallows'],
    ['Disallow: /page\nAllow: /page', '/page', true, 'of equals the one that allows'],
    ['Disallow: /folder\nAllow: /folder/', '/folder/x', true, 'from the RFC'],
    ['Allow: /page\nDisallow: /*.htm', '/page.htm', false, 'from the RFC'],
    ['Allow: /page\nDisallow: /*.ph', '/page.php5', true, 'wildcards count as octets'],
    ['Allow: /$\nDisallow: /', '/', true, 'only the root'],
    ['Allow: /$\nDisallow: /', '/a', false, 'not the root'],
    ['Disallow: /*.gif$', '/a/b.gif', false, 'at the end'],
    ['Disallow: /*.gif$', '/a/b.gif?x', true, 'not at the end'],
    ['Disallow: /*.gif$', '/a.gif.gif', false, 'the last one ends it'],
    ['Disallow: /a*b*c', '/axbxc', false, 'wildcards in order'],
    ['Disallow: /a*b*c', '/acb', true, 'not in order'],
    ['Disallow: /a*', '/a', false, 'a wildcard may stand for nothing'],
    ['Disallow: /a***b', '/ab', false, 'a run is one'],
    ['Disallow: *x', '/a/x', false, 'at the start'],
    ['Disallow: /a*$', '/abc', false, 'anything to the end'],
    ['Disallow: /ab*ba$', '/aba', true, 'parts do not overlap'],
    ['Disallow: /?q=', '/?q=1', false, 'the query'],
    ['Disallow: /a%3cd', '/a%3Cd', false, 'escapes in either case'],
    ['Disallow: /%7Ejoe', '/~joe', false, 'escapes of what needs none'],
    ['Disallow: /a%2fb', '/a/b', true, 'escapes of what means something'],
    ['Disallow: /münchen', '/m%C3%BCnchen', false, 'UTF-8'],
    ['Disallow: / # all', '/a', false, 'comments'],
    ['  DISALLOW :  /a  ', '/a', false, 'space and case of keys'],
    ['Disallow: /', '/robots.txt', true, 'itself is always allowed'],
    ['Disallow /a', '/a', true, 'no colon'],
  ])('%j of %s: %s (%s)', (rules, path, expected) => {
    expect(allows(`User-agent: *\n${rules}`, path)).toBe(expected);
  });
});

describe('the groups that count', () => {
  test.each([
    [
      'User-agent: *\nDisallow: /\n\nUser-agent: queuedcrawler\nDisallow: /x',
      '/y',
      true,
      'its own',
    ],
    ['User-agent: QueuedCrawler/1.0\nDisallow: /x', '/x', false, 'with a version'],
    ['User-agent: QueuedCrawlerPlus\nDisallow: /x', '/x', true, 'another name'],
    ['User-agent: other\nDisallow: /', '/x', true, 'nobody we are'],
    ['User-agent: a\nUser-agent: *\nDisallow: /x', '/x', false, 'names share their rules'],
    ['User-agent: *\nDisallow: /x\nUser-agent: a\nDisallow: /y', '/y', true, 'a new group'],
    ['User-agent: QueuedCrawler\n\nUser-agent: *\nDisallow: /x', '/x', false, 'names in a row'],
    [
      'User-agent: QueuedCrawler\nDisallow: /x\nUser-agent: a\nDisallow: /\nUser-agent: QueuedCrawler\nDisallow: /y',
      '/y',
      false,
      'groups of one name are one',
    ],
    [
      'User-agent: *\nSitemap: https://site.test/map.xml\nHost: site.test\nUser-agent: a\nDisallow: /x',
      '/x',
      false,
      'other records end no group (RFC 9309, 2.2.4)',
    ],
    [
      'User-agent: *\nCrawl-delay: 1\nUser-agent: a\nDisallow: /x',
      '/x',
      true,
      'a crawl-delay is a rule',
    ],
    ['\ufeffUser-agent: *\r\nDisallow: /x\r\n', '/x', false, 'a byte order mark, CRLF'],
    ['Disallow: /x', '/x', true, 'rules before any name'],
    ['User-agent: QueuedCrawler\nDisallow:\n\nUser-agent: *\nDisallow: /', '/x', true, 'free'],
  ])('%j of %s: %s (%s)', (text, path, expected) => {
    expect(allows(text, path)).toBe(expected);
  });

  test('have their crawl-delay', () => {
    const delayOf = (text: string): number => atOnce(parseRobots(text, 'QueuedCrawler')).crawlDelay;
    expect(delayOf('User-agent: *\nCrawl-delay: 2.5')).toBe(2.5);
    expect(delayOf('User-agent: *\nCrawl-delay: 9\nUser-agent: QueuedCrawler\nAllow: /')).toBe(0);
    expect(delayOf('User-agent: *\nCrawl-delay: -1')).toBe(0);
    expect(delayOf('User-agent: *\nCrawl-delay: soon')).toBe(0);
  });
});

test('a long URL is judged by its beginning, and never by an end it does not have', () => {
  const long = `/${'a'.repeat(5_000)}`;
  expect(allows('User-agent: *\nDisallow: /a', long)).toBe(false);
  expect(allows('User-agent: *\nDisallow: /*a$', long)).toBe(true);
});

test('three thousand patterns are searched for in full', () => {
  const rules = Array.from({ length: 3_000 }, (_, n) => `Disallow: /*?filter${n}=`).join('\n');
  expect(allows(`User-agent: *\n${rules}`, `/shop/${'item-'.repeat(20)}?filter2999=1`)).toBe(false);
  expect(allows(`User-agent: *\n${rules}`, `/shop/${'item-'.repeat(20)}?other=1`)).toBe(true);
});
