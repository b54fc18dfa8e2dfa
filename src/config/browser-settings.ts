import { availableParallelism } from 'node:os';
import { type ConfigText, choice, integer, text } from './setting-parsers.ts';
import { usableMemory } from './usable-memory.ts';

/** Two pages keep a core busy; the browser and its pages are left half of the memory. */
function browserPages(value: string): number {
  if (value !== '') return integer(1, 64)(value);
  const fitting = Math.floor(usableMemory() / (500 * 1_000_000));
  return Math.min(Math.max(Math.min(2 * availableParallelism(), fitting), 1), 16);
}

/** The browser, in the order of docs/settings.md. */
export const browserSettings = {
  chromiumPath: {
    variable: 'CHROMIUM_PATH',
    fallback: '',
    parse: text,
    meaning:
      'Chromium for JavaScript crawls, instead of the one that comes with the packages. One that cannot be run is logged at the start, which continues.',
  },
  chromiumSandbox: {
    variable: 'CHROMIUM_SANDBOX',
    fallback: 'auto',
    parse: choice('auto', 'require', 'off'),
    meaning:
      'auto: Chromium runs in its sandbox where that works, else without and with a warning; require: no JavaScript crawls without it; off: without.',
  },
  chromiumWebgl: {
    variable: 'CHROMIUM_WEBGL',
    fallback: 'on',
    parse: (value: string): boolean => choice('on', 'off')(value) === 'on',
    meaning:
      'on: pages get WebGL, drawn by the processor; off: they get none, so that Chromium can be attacked by one way less.',
  },
  crawlerIdentity: {
    variable: 'CRAWLER_IDENTITY',
    fallback: 'named',
    parse: choice('named', 'visitor'),
    meaning:
      'named: user agents contain the name of the service; visitor: those of a browser alone, with its other headers. Scripts of pages are then not told that it is automated.',
  },
  jsSnippets: {
    variable: 'JS_SNIPPETS',
    fallback: 'refused',
    parse: (value: string): boolean => choice('refused', 'allowed')(value) === 'allowed',
    meaning:
      'allowed: js_snippet runs scripts of clients in pages, which reach what any page reaches; refused: it is refused.',
  },
  browserPages: {
    variable: 'BROWSER_PAGES',
    fallback: '',
    parse: browserPages,
    meaning:
      'Maximum of open browser pages in each process, plus a quarter for accounts without an open page. Default: two for each core, at most one for each 500 MB of memory, 1 to 16.',
  },
} as const satisfies Record<string, ConfigText>;
