import { Agent } from 'undici';
import type { Crawl, CrawlFigure } from './contender.ts';
import { fetchPage, postPage } from './page-requests.ts';
import { answerJobs, timed } from './worker-process.ts';

// The plain limit: a loop of requests without a queue, and without keeping what comes.

async function crawl({ mode, concurrency, pages, site, hook }: Crawl): Promise<CrawlFigure> {
  const agent = new Agent({ connections: concurrency });
  let next = 0;
  async function loop(): Promise<void> {
    while (next < pages) {
      const page = await fetchPage(`${site}/page/${next++}`, agent);
      if (mode === 'webhook') await postPage(hook, page, {}, agent);
    }
  }
  const { seconds, cpuSeconds } = await timed(
    async () => void (await Promise.all(Array.from({ length: concurrency }, loop))),
  );
  await agent.close();
  return { perSecond: pages / seconds, cpuPerThousand: (cpuSeconds / pages) * 1_000 };
}

answerJobs((job) => crawl(job as Crawl));
