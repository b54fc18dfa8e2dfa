/** The name this crawler goes by, in its user agents and in robots.txt. */
export const CRAWLER_NAME = 'QueuedCrawler';

/**
 * User agents by `device`, in the form that the large search engines use: that of a current
 * browser, so that sites serve their normal page, with the crawler's own name in it, so that they
 * can identify it.
 */
export const USER_AGENTS = {
  desktop:
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko; compatible; QueuedCrawler/1.0) Chrome/142.0.0.0 Safari/537.36',
  tablet:
    'Mozilla/5.0 (Linux; Android 15; Pixel Tablet) AppleWebKit/537.36 (KHTML, like Gecko; compatible; QueuedCrawler/1.0) Chrome/142.0.0.0 Safari/537.36',
  mobile:
    'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko; compatible; QueuedCrawler/1.0) Chrome/142.0.0.0 Mobile Safari/537.36',
} as const;
