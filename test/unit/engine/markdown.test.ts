import { describe, expect, test } from 'vitest';
import { markdown } from '../../../src/engine/extract/markdown/markdown.ts';
import { parseDocument } from '../../../src/engine/extract/parse-document.ts';

const asMarkdown = (body: string, readable = false): string =>
  markdown({ document: parseDocument(body), url: 'https://site.example/a/' }, readable);

const TEXT = 'Long enough to count as the main part of a page, with commas, and a second clause. ';
const article = (html: string): string =>
  `<main><article><h1>Title</h1>${`<p>${TEXT.repeat(4)}</p>`.repeat(4)}${html}</article></main>`;

test.each([
  ['a data-lang on the code', '<pre><code data-lang="go">x</code></pre>', 'go'],
  ['a data-language on the pre', '<pre data-language="js"><code>x</code></pre>', 'js'],
  ['a lang on the pre', '<pre lang="ruby"><code>x</code></pre>', 'ruby'],
  ['a class after hljs', '<pre><code class="hljs javascript">x</code></pre>', 'javascript'],
  ['a class before hljs', '<pre><code class="python hljs">x</code></pre>', 'python'],
  ['a class with hljs and a prefix', '<pre><code class="hljs language-c">x</code></pre>', 'c'],
  ['nothing when lang is that of the text', '<pre lang="en-GB">x</pre>', ''],
])('code has its language from %s', (_, html, language) => {
  const fence = `\`\`\`${language}\nx\n\`\`\``;
  expect(asMarkdown(html)).toBe(fence);
  expect(asMarkdown(article(html), true)).toContain(fence);
});

describe('formulas are TeX', () => {
  const tex = '<annotation encoding="application/x-tex">a^2</annotation>';
  test.each([
    ['inline MathML', `<p>so <math>${tex}</math> it is</p>`, 'so $a^2$ it is'],
    ['display MathML', `<p>so</p><math display="block">${tex}</math>`, 'so\n\n$$\na^2\n$$'],
    ['an inline script', '<p>so <script type="math/tex">a^2</script> is</p>', 'so $a^2$ is'],
    [
      'a display script with what it was drawn as',
      '<p>so</p><div class="MathJax_Display">a2</div><script type="math/tex; mode=display">a^2</script>',
      'so\n\n$$\na^2\n$$',
    ],
    [
      'MathML next to what KaTeX draws',
      `<p>so <span class="katex-mathml"><math>${tex}</math></span><span class="katex-html">a2</span></p>`,
      'so $a^2$',
    ],
    [
      'MathML that MediaWiki hides next to its picture',
      `<p>so <span style="display: none"><math>${tex}</math></span></p>`,
      'so $a^2$',
    ],
  ])('%s', (_, html, text) => {
    expect(asMarkdown(html)).toBe(text);
    expect(asMarkdown(article(html), true)).toContain(text);
  });
});

test('headings lose the edit links of MediaWiki', () => {
  const html =
    '<h2>History<span class="mw-editsection">[<a href="/edit">edit</a>]</span></h2><p>Text</p>';
  expect(asMarkdown(html)).toBe('## History\n\nText');
});

test('task lists keep their boxes in the main content', () => {
  const list =
    '<ul><li><input type="checkbox" checked disabled> done</li><li><input type="checkbox"> open</li></ul>';
  expect(asMarkdown(list)).toMatch(/^- +\[x\] +done\n- +\[ \] +open$/);
  expect(asMarkdown(article(list), true)).toMatch(/- +\[x\] +done\n- +\[ \] +open/);
});

test.each([
  ['of an image', '<img alt="A" srcset="/s.jpg 320w, /l.jpg 1280w,/m.jpg 640w">'],
  ['of an image that is loaded later', '<img alt="A" data-srcset="/s.jpg, /l.jpg 2x">'],
  [
    'of its sources',
    '<picture><source srcset="/l.jpg 2x, /s.jpg 1x"><img alt="A" src="data:image/gif;base64,R0"></picture>',
  ],
])('an image without src has the largest of the srcset %s', (_, html) => {
  expect(asMarkdown(html)).toBe('![A](https://site.example/l.jpg)');
});

test('what an inline style hides is left out, but not the page that a script shows', () => {
  expect(asMarkdown('<p>seen</p><p style="color:red; DISPLAY : none !important">hidden</p>')).toBe(
    'seen',
  );
  expect(asMarkdown('<body style="display:none"><p>seen</p></body>')).toBe('seen');
  expect(asMarkdown('<div style="display:none"><main>seen</main></div>')).toBe('seen');
});

test('of a short page the main part is taken', () => {
  const menu = `<nav><ul>${'<li><a href="/x">Menu entry</a></li>'.repeat(12)}</ul></nav>`;
  const banner = '<div class="consent"><p>We use cookies for this and that.</p></div>';
  const page = `${menu}<main><h1>Opening hours</h1><p>Open from 9 to 5.</p></main>${banner}`;
  expect(asMarkdown(page, true)).toBe('# Opening hours\n\nOpen from 9 to 5.');
});
