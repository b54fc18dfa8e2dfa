import { createRequire } from 'node:module';
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

/** The major version of the Chromium that this project depends on, for crawls that start no browser. */
export function packagedChromeMajor(): string {
  const { dependencies, peerDependencies } = createRequire(import.meta.url)(
    '../../../package.json',
  ) as Readonly<Record<string, Readonly<Record<string, string>> | undefined>>;
  const range = { ...peerDependencies, ...dependencies }['@sparticuz/chromium'] ?? '';
  const [major] = /\d+/.exec(range) ?? [];
  if (major === undefined) throw new Error('package.json names no version of @sparticuz/chromium');
  return major;
}
