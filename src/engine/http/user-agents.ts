import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { CrawlParameters } from '../../domain/parameters.ts';

/** The name this crawler goes by, in its user agents and in robots.txt. */
export const CRAWLER_NAME = 'QueuedCrawler';

/**
 * `CRAWLER_IDENTITY`. `named`: user agents contain the crawler's name, in the form that the large
 * search engines use, so that sites serve their normal page and can identify it. `visitor`: they
 * are those of a browser alone.
 */
export type CrawlerIdentity = 'named' | 'visitor';

/** The `device` of a crawl. */
export type DeviceName = NonNullable<CrawlParameters['device']>;

const SYSTEMS = {
  desktop: 'X11; Linux x86_64',
  tablet: 'Linux; Android 15; Pixel Tablet',
  mobile: 'Linux; Android 15; Pixel 9',
} as const satisfies Record<DeviceName, string>;

/** User agents by `device`, of the Chrome with that major version. */
export function userAgents(
  identity: CrawlerIdentity,
  chromeMajor: string,
): Readonly<Record<DeviceName, string>> {
  const comment =
    identity === 'named'
      ? `KHTML, like Gecko; compatible; ${CRAWLER_NAME}/1.0`
      : 'KHTML, like Gecko';
  const of = (device: DeviceName): string => {
    const mobile = device === 'mobile' ? ' Mobile' : '';
    return `Mozilla/5.0 (${SYSTEMS[device]}) AppleWebKit/537.36 (${comment}) Chrome/${chromeMajor}.0.0.0${mobile} Safari/537.36`;
  };
  return { desktop: of('desktop'), tablet: of('tablet'), mobile: of('mobile') };
}

/** The major version of the Chromium in the packages, for crawls that start no browser. */
export function packagedChromeMajor(): string {
  const main = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  for (let folder = dirname(main); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        name?: string;
        version?: string;
      };
      const [major] = version?.split('.') ?? [];
      if (name === '@sparticuz/chromium' && major !== undefined) return major;
    } catch {
      // The package's own file is further up.
    }
  }
  throw new Error('the package @sparticuz/chromium has no version');
}
