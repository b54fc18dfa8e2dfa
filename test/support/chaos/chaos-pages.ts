import type { ChaosCrawler } from './chaos-crawlers.ts';
import type { ChaosSite } from './chaos-site.ts';

/** The batch that all URLs of a crawler belong to. */
export const CHAOS_BATCH = 'load';
/** How long a URL waits that is not to be crawled at once. */
export const DELAY_MS = 3_000;
/** Longer than a run. */
const LONG_SECONDS = 86_400;
/** Every eleventh URL waits, by its delay or until a time. */
const DELAYED_ONE_OF = 11;
/** Every thirteenth is another's page, and takes it from storage if it is there. */
const AGED_ONE_OF = 13;
/** Every twenty-third fails for good, at an address that may not be reached. */
const FAILING_ONE_OF = 23;
/** One page in this number fails at its first request. */
const FLAKY_ONE_OF = 100;
const FAILING_HOSTS = 200;

/** Whether the page of that number waits before it may be crawled. */
export const isDelayed = (n: number): boolean => n % DELAYED_ONE_OF === 0;
/** Whether its crawl ends as failed, without a request. */
export const isFailing = (n: number): boolean => n % FAILING_ONE_OF === FAILING_ONE_OF - 1;
const isAgedNumber = (n: number): boolean => n > BATCH && n % AGED_ONE_OF === 0 && !isFailing(n);
/** Whether it is a page that was pushed before, and that comes from storage if it is there. */
export const isAged = ({ delivery }: ChaosCrawler, n: number): boolean =>
  delivery === 'storage' && isAgedNumber(n);

/** URLs of one push. */
export const BATCH = 20;

/** Why a failing page fails. */
export const FAILURE = 'address_not_allowed';

/** The metadata of a page. */
export const metadataOf = (n: number): string => `{"n":${n}}`;

/** The number of the page that an aged one repeats: one that is crawled at once, pushed long before. */
export function repeatedBy(n: number): number {
  let m = Math.floor(n / 2);
  while (isDelayed(m) || isFailing(m) || isAgedNumber(m)) m += 1;
  return m;
}

/** The item that pushes the page of that number, with every field of a push. */
export function itemOf(site: ChaosSite, crawler: ChaosCrawler, n: number): object {
  const common = {
    priority: n % 10,
    metadata: metadataOf(n),
    unique_for: LONG_SECONDS,
    batch: CHAOS_BATCH,
    ...startOf(n),
  };
  if (isFailing(n)) {
    return { ...common, url: `http://10.0.0.${1 + (n % FAILING_HOSTS)}/${crawler.name}/${n}` };
  }
  if (!isAged(crawler, n)) return { ...common, url: addressOf(site, crawler, n) };
  return {
    ...common,
    url: addressOf(site, crawler, repeatedBy(n)),
    // The URL itself is the key of the first.
    unique_key: `aged-${n}`,
    parameters: { max_age: LONG_SECONDS },
  };
}

/** Those of even and of odd numbers say it in the two ways that there are. */
function startOf(n: number): object {
  if (!isDelayed(n)) return {};
  if (n % 2 === 0) return { delay: DELAY_MS / 1_000 };
  return { not_before: new Date(Date.now() + DELAY_MS).toISOString() };
}

/** The address of a crawler's page: its delay is spread from half to one and a half of the average. */
function addressOf(site: ChaosSite, { name, pageMs, hosts = 1 }: ChaosCrawler, n: number): string {
  const delayMs = Math.round(pageMs * (0.5 + ((n * 0.618034) % 1)));
  const fails = n % FLAKY_ONE_OF === FLAKY_ONE_OF - 1 ? 1 : 0;
  return site.page(name, n, delayMs, fails, hosts);
}
