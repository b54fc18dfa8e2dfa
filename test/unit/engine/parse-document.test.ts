import { expect, test } from 'vitest';
import { parseDocument } from '../../../src/engine/extract/parse-document.ts';

test.each([
  // A page, its body's markup: what browsers make of it.
  ['<title>t</title><p>a<p>b', '<p>a</p><p>b</p>'],
  ['<html><h1>x</h1></html>', '<h1>x</h1>'],
  ['<!-- note --><h1>x', '<h1>x</h1>'],
  ['only words', 'only words'],
  ['', ''],
  ['<table><tr><td>1', '<table><tbody><tr><td>1</td></tr></tbody></table>'],
  ['<ul><li>a<li>b</ul>', '<ul><li>a</li><li>b</li></ul>'],
  ['<b>1<p>2</b>3</p>', '<b>1</b><p><b>2</b>3</p>'],
])('%s', (html, body) => {
  const document = parseDocument(html);
  expect(document.body.innerHTML).toBe(body);
  expect(document.documentElement.localName).toBe('html');
  expect(document.head.localName).toBe('head');
});

test('attributes, classes, templates and SVG are kept', () => {
  const document = parseDocument(
    '<html lang=de><p class="a b" data-x="&amp;">t<template><i>in</i></template><svg viewBox="0 0 1 1"><use xlink:href="#a"/></svg>',
  );
  expect(document.documentElement.getAttribute('lang')).toBe('de');
  expect(document.querySelector('p.b')?.getAttribute('data-x')).toBe('&');
  expect(document.querySelector('svg')?.getAttribute('viewBox')).toBe('0 0 1 1');
  expect(document.querySelector('use')?.getAttribute('xlink:href')).toBe('#a');
});

test('nesting without end stays within what can be walked', () => {
  const document = parseDocument(`${'<div>'.repeat(100_000)}end`);
  let depth = 0;
  for (let at = document.querySelector('div'); at !== null; at = at.querySelector('div'))
    depth += 1;
  expect(depth).toBeLessThan(520);
  expect(document.body.textContent).toBe('end');
});
