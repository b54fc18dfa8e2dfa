/**
 * How one URL is crawled; an absent parameter has its default. The names are those of the API, so
 * that the stored form, the REST query and the proto need no mapping.
 */
export interface CrawlParameters {
  readonly format?: 'html' | 'json' | 'md';
  readonly md_readability?: boolean;
  readonly pretty?: boolean;
  readonly user_agent?: string;
  readonly device?: 'desktop' | 'tablet' | 'mobile';
  /** `name:value|name2:value2` */
  readonly request_headers?: string;
  /** `a=1; b=2` */
  readonly set_cookies?: string;
  readonly cookies_session?: string;
  readonly get_headers?: boolean;
  readonly get_cookies?: boolean;
  /** ISO 3166-1 alpha-2, upper case. */
  readonly country?: string;
  /** Milliseconds. */
  readonly page_wait?: number;
  readonly ajax_wait?: boolean;
  readonly css_click_selector?: string;
  readonly scroll?: boolean;
  /** Seconds. */
  readonly scroll_interval?: number;
  readonly screenshot?: boolean;
  readonly mode?: 'fullpage' | 'viewport';
  /** Pixels. */
  readonly width?: number;
  /** Pixels. */
  readonly height?: number;
  readonly scraper?: string;
  readonly autoparse?: boolean;
  /** `403,429` */
  readonly custom_success_codes?: string;
  readonly tor_network?: boolean;
}
