import type { Page } from '../crawler/crawler.ts';
import type { PageShaper } from '../crawler/formats/shape-page.ts';
import type { Clock } from '../domain/clock.ts';
import type { DeliveryMode } from '../domain/crawler.ts';
import type { CrawlRecord, CrawlRequest, CrawlStatus } from '../domain/job.ts';
import { structuredBody } from '../domain/json-body.ts';
import type { CrawlParameters } from '../domain/parameters.ts';
import { createRid } from '../domain/rid.ts';
import type { MediaStore } from '../store/store.ts';
import { deliveryBody } from '../webhook/delivery-body.ts';
import { extraFields, resultFields } from '../webhook/delivery-fields.ts';
import { compress } from './compress.ts';

const SCREENSHOT_MS = 60 * 60 * 1_000;

/** A page in the shape its client asked for. */
export interface ShapedPage {
  readonly contentType: string;
  /** Not compressed. */
  readonly body: Uint8Array;
  readonly isText: boolean;
  /** `failure` when there is one; `screenshot_url` and `original_*`, as asked for. */
  readonly extras: Readonly<Record<string, string>>;
}

/**
 * What storage keeps of a shaped page: the page itself, or with `scraper` or `autoparse` an envelope whose `body` is the data, which is
 * what readers of stored results expect.
 */
export function storedContent(
  shaped: ShapedPage,
  result: CrawlStatus & { readonly rid: string; readonly pushedUrl: string },
  { scraper, autoparse }: CrawlParameters,
): Pick<ShapedPage, 'contentType' | 'body'> {
  if (scraper === undefined && autoparse !== true) return shaped;
  const source = { ...result, extras: shaped.extras };
  const envelope = {
    ...resultFields(source),
    ...extraFields(source),
    ...structuredBody(shaped.body),
  };
  return {
    contentType: 'application/json; charset=utf-8',
    body: Buffer.from(JSON.stringify(envelope)),
  };
}

/** Turns crawled pages into results. */
export interface Recorder {
  /** Shapes the page; a picture goes to the media store. */
  shape(page: Page, request: CrawlRequest): Promise<ShapedPage>;
  /** The record that is stored or delivered, its body compressed. */
  record(
    page: Page,
    request: CrawlRequest,
    rid: string,
    delivery: DeliveryMode,
  ): Promise<CrawlRecord>;
}

/** Makes the recorder. `publicUrl` is the base of `screenshot_url`, without a slash at its end. */
export function createRecorder(deps: {
  readonly shapePage: PageShaper;
  readonly media: Pick<MediaStore, 'put'>;
  readonly clock: Clock;
  readonly publicUrl: () => string;
}): Recorder {
  async function screenshotUrl(jpeg: Uint8Array): Promise<string> {
    const now = deps.clock.now();
    // The picture has no token of its own, so its address has to be one nobody guesses.
    const id = createRid(now) + crypto.randomUUID().replaceAll('-', '');
    await deps.media.put(id, 'image/jpeg', jpeg, new Date(now.getTime() + SCREENSHOT_MS));
    return `${deps.publicUrl()}/screenshots?id=${id}`;
  }

  async function shape(page: Page, request: CrawlRequest): Promise<ShapedPage> {
    const { parameters } = request;
    const extras: Record<string, string> = {};
    if (page.failure !== undefined) extras.failure = page.failure.reason;
    if (page.screenshot !== undefined) {
      extras.screenshot_url = await screenshotUrl(page.screenshot);
    }
    if (parameters.get_headers === true) {
      for (const [name, value] of page.headers) {
        if (name !== 'set-cookie') extras[`original_${name.replaceAll('-', '_')}`] = value;
      }
    }
    if (parameters.get_cookies === true) {
      const cookies = page.headers.filter(([name]) => name === 'set-cookie');
      extras.original_set_cookie = cookies.map(([, value]) => value).join('; ');
    }
    return { ...(await deps.shapePage(page, request)), extras };
  }

  return {
    shape,
    async record(page, request, rid, delivery) {
      const { format = 'html', pretty } = request.parameters;
      const shaped = await shape(page, request);
      const { cbStatus, originalStatus, url } = page;
      const result = { cbStatus, originalStatus, url, rid, pushedUrl: request.url };
      const content =
        delivery === 'storage'
          ? storedContent(shaped, result, request.parameters)
          : deliveryBody({ ...result, ...shaped, format, pretty });
      return {
        ...result,
        contentType: content.contentType,
        body: await compress(content.body),
        extras: shaped.extras,
      };
    },
  };
}
