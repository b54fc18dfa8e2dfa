/** The parts of a crawler's page, by their names in the address, in the order of the page. */
export const CRAWLER_TABS = {
  overview: 'Overview',
  jobs: 'Queue',
  hosts: 'Hosts',
  batches: 'Batches',
  deliveries: 'Deliveries',
  results: 'Results',
  failures: 'Failures',
  push: 'Push',
  settings: 'Settings',
} as const;

/** The name of a part in the address. */
export type CrawlerTab = keyof typeof CRAWLER_TABS;

/** Whether a part of the address is the name of one. */
export const isCrawlerTab = (text: string): text is CrawlerTab => Object.hasOwn(CRAWLER_TABS, text);
