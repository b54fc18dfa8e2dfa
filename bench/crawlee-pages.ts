import { gzipSync } from 'node:zlib';
import { Configuration, LogLevel, log, PlaywrightCrawler } from '@crawlee/playwright';
import { chromium } from 'playwright';

/**
 * Crawls with Crawlee's defaults for a browser, to HTML that is compressed in memory. Returns pages per second,
 * counted from the first page, because the service's browser is running, too.
 */
export async function crawleePages(
  urls: readonly string[],
  concurrency: number,
  executablePath: string,
): Promise<number> {
  log.setLevel(LogLevel.ERROR);
  let done = 0;
  let startedAt = 0;
  const crawler = new PlaywrightCrawler(
    {
      launchContext: {
        launcher: chromium,
        launchOptions: { executablePath, args: ['--disable-gpu'] },
      },
      minConcurrency: concurrency,
      maxConcurrency: concurrency,
      async requestHandler({ page }) {
        gzipSync(await page.content());
        if (startedAt === 0) startedAt = performance.now();
        else done += 1;
      },
    },
    new Configuration({ persistStorage: false, purgeOnStart: true }),
  );
  await crawler.run([...urls]);
  const perSecond = done / ((performance.now() - startedAt) / 1_000);
  if (done !== urls.length - 1) throw new Error(`Crawlee has crawled ${done} pages`);
  return perSecond;
}
