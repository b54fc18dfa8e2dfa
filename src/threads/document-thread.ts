import { parentPort } from 'node:worker_threads';
import { Readability } from '@mozilla/readability';
import TurndownService from 'turndown';
import { type DocumentOutput, UNREADABLE } from '../engine/extract/format-page.ts';
import { parseDocument } from '../engine/extract/parse-document.ts';
import { scraperFor, scrapers } from '../engine/extract/scrapers/scrapers.ts';
import type { DocumentTask } from './document-threads.ts';

// The program of a document thread: it parses one document at a time, so that a hostile one can be
// stopped and stalls nobody else.

const turndown = new TurndownService({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
});
turndown.remove(['script', 'style', 'noscript', 'template', 'iframe']);

function markdown(document: Document, readable: boolean): string {
  const main = readable ? new Readability(document).parse() : undefined;
  if (main?.content !== undefined && main.content !== null) {
    const text = turndown.turndown(parseDocument(main.content).body);
    const title = main.title?.trim() ?? '';
    return title === '' ? text : `# ${title}\n\n${text}`;
  }
  return turndown.turndown(document.body);
}

function perform({ html, url, work }: DocumentTask): string {
  const document = parseDocument(
    Buffer.from(html.buffer, html.byteOffset, html.byteLength).toString(),
  );
  if (work === 'md' || work === 'readable_md') return markdown(document, work === 'readable_md');
  const page = { document, url };
  const name = work === 'autoparse' ? scraperFor(page) : work;
  const data = scrapers[name](page) as object;
  return JSON.stringify(work === 'autoparse' ? { scraper: name, ...data } : data);
}

// An error's message may quote the page; the place where it was thrown is enough to find it.
function whereThrown(error: unknown): string {
  const { name, stack = '' } = error instanceof Error ? error : new Error('not an Error');
  const at = stack.split('\n').filter((line) => line.startsWith('    at '));
  return [name, ...at.slice(0, 5)].join('\n');
}

parentPort?.postMessage('ready');
parentPort?.on('message', (task: DocumentTask) => {
  let answer: DocumentOutput;
  try {
    answer = { text: perform(task) };
  } catch (error) {
    answer = { failed: UNREADABLE, cause: whereThrown(error) };
  }
  parentPort?.postMessage(answer);
});
