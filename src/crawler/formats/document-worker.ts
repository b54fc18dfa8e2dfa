import { parentPort } from 'node:worker_threads';
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import TurndownService from 'turndown';
import { scraperFor, scrapers } from '../scrapers/scrapers.ts';
import type { DocumentAnswer, DocumentTask } from './document-workshop.ts';

// Documents are parsed in this thread, so that a hostile one can be stopped and stalls nobody else.

const turndown = new TurndownService({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
});
turndown.remove(['script', 'style', 'noscript', 'template', 'iframe']);

function markdown(document: Document, readable: boolean): string {
  const main = readable ? new Readability(document).parse() : undefined;
  if (main?.content !== undefined && main.content !== null) {
    const title = main.title === null || main.title === undefined ? '' : `# ${main.title}\n\n`;
    return (
      title +
      turndown.turndown(
        parseHTML(`<!doctype html><html><body>${main.content}</body></html>`).document.body,
      )
    );
  }
  return turndown.turndown(document.body ?? document.documentElement);
}

function perform({ html, url, work }: DocumentTask): string {
  const { document } = parseHTML(html) as unknown as { document: Document };
  if (work === 'md' || work === 'readable_md') return markdown(document, work === 'readable_md');
  const page = { document, url };
  const name = work === 'autoparse' ? scraperFor(page) : work;
  const scraper = scrapers[name];
  if (scraper === undefined) throw new Error(`there is no scraper ${name}`);
  const data = scraper(page) as object;
  return JSON.stringify(work === 'autoparse' ? { scraper: name, ...data } : data);
}

parentPort?.on('message', (task: DocumentTask) => {
  let answer: DocumentAnswer;
  try {
    answer = { text: perform(task) };
  } catch (error) {
    answer = { failed: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(answer);
});
