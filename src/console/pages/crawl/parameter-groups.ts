/** A parameter by its name in the API, and what it does. */
type Row = readonly [name: string, help: string];

/** Parameters that belong together. */
export interface ParameterGroup {
  readonly title: string;
  /** Whether they need a browser, and so the JavaScript token. */
  readonly browser: boolean;
  readonly parameters: readonly Row[];
}

/** The name of a crawl parameter. */
export type ParameterName = string;

/** Every crawl parameter; a test compares them with the API's. */
export const PARAMETER_GROUPS: readonly ParameterGroup[] = [
  {
    title: 'Result',
    browser: false,
    parameters: [
      ['format', 'html: the page. json: an object with the page in it. md: Markdown.'],
      ['pretty', 'Indents JSON.'],
      ['md_readability', 'Markdown of the main content only.'],
      ['scraper', 'links, article, product, metadata, email-extractor or generic-extractor.'],
      ['autoparse', 'Chooses the scraper from the page.'],
      ['get_headers', 'Adds the response headers of the site.'],
      ['get_cookies', 'Adds the cookies that the site sets.'],
      ['max_age', 'Seconds: a stored page that is not older is the result, without a request.'],
      ['custom_success_codes', 'Statuses that count as success, such as 403,429.'],
    ],
  },
  {
    title: 'Request',
    browser: false,
    parameters: [
      ['user_agent', 'Wins over the device.'],
      ['device', 'Sets user agent and window size.'],
      ['request_headers', 'name:value|name2:value2'],
      ['set_cookies', 'a=1; b=2'],
      ['cookies', 'Another name of set_cookies.'],
      ['cookies_session', 'Shares cookies between crawls that have the same name here.'],
      ['country', 'Two letters; needs a proxy for it.'],
      ['proxy', 'Name of a pool of proxies; `direct` for none.'],
      ['session', 'One visitor: shares cookies and a proxy between crawls with this name.'],
      ['tor_network', 'Through the operator’s Tor proxy.'],
    ],
  },
  {
    title: 'Browser',
    browser: true,
    parameters: [
      ['page_wait', 'Milliseconds after the page has loaded, up to 60,000.'],
      ['ajax_wait', 'Waits until the page loads nothing more.'],
      ['wait_for_selector', 'Waits up to 30 s for this element.'],
      ['css_click_selector', 'Clicks this element; several separated by |.'],
      ['js_snippet', 'Runs this script in the loaded page, where the operator allows it.'],
      ['scroll', 'Scrolls down before the page is taken.'],
      ['scroll_interval', 'Seconds to scroll, 1 to 60.'],
      [
        'block_resources',
        'Leaves out images, media, fonts, stylesheets, third_party or ads; by commas.',
      ],
      ['include_frames', 'Puts frames of the own origin into the page.'],
      ['locale', 'What the page sees, such as de-DE.'],
      ['timezone', 'What the page sees, such as Europe/Berlin.'],
    ],
  },
  {
    title: 'Screenshot and PDF',
    browser: true,
    parameters: [
      ['screenshot', 'A JPEG, kept for an hour.'],
      ['mode', 'The whole page or what the window shows.'],
      ['width', 'Pixels of the window, up to 4,096.'],
      ['height', 'Pixels of the window, up to 16,384.'],
      ['pdf', 'The page as it is printed, in place of its HTML.'],
    ],
  },
];
