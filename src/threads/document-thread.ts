import { parentPort } from 'node:worker_threads';
import { type DocumentOutput, UNREADABLE } from '../engine/extract/format-page.ts';
import { markdown } from '../engine/extract/markdown/markdown.ts';
import { parseDocument } from '../engine/extract/parse-document.ts';
import { scraperFor, scrapers } from '../engine/extract/scrapers/scrapers.ts';
import type { DocumentTask } from './document-threads.ts';
import { yieldToService } from './thread-priority.ts';

// The program of a document thread: it parses one document at a time, so that a hostile one can be
// stopped and stalls nobody else.

function perform({ html, url, work }: DocumentTask): string {
  const document = parseDocument(
    Buffer.from(html.buffer, html.byteOffset, html.byteLength).toString(),
  );
  const page = { document, url };
  if (work === 'md' || work === 'readable_md') return markdown(page, work === 'readable_md');
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

yieldToService();
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
