/** A page that was crawled, with what is known of it. */
export interface CrawledPage {
  readonly rid: string;
  readonly url: string;
  readonly pushedUrl: string;
  readonly cbStatus: number;
  readonly originalStatus: number;
  /** Empty when the crawl succeeded. */
  readonly failure: string;
  readonly contentType: string;
  readonly content: Uint8Array<ArrayBuffer>;
  readonly text: string;
  /** Whether the text was cut off. */
  readonly isCut: boolean;
  readonly byteCount: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A path of this service; empty when there is no picture. */
  readonly screenshot: string;
  readonly screenshotFailed: string;
  /** The rung of the crawler's ladder, and those that had blocked it. */
  readonly rung?: string | undefined;
  readonly climbed?: string | undefined;
  /** That of the push. */
  readonly metadata?: string | undefined;
}

/** The part of it that is its content. */
type PageContent = Pick<CrawledPage, 'content' | 'text' | 'isCut' | 'byteCount'>;

/** Most bytes of a page that are unpacked; the service keeps 10 MiB by default. */
const MAX_BYTES = 12 * 1024 * 1024;
/** Most bytes that are shown: longer texts make a browser slow. */
const MAX_SHOWN_BYTES = 1024 * 1024;

/** Unpacks a stored page, as far as it is shown. */
export async function gunzipped(packed: Uint8Array): Promise<PageContent> {
  const unpacked = new Blob([packed as Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new DecompressionStream('gzip'))
    .getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await unpacked.read();
    if (done) break;
    chunks.push(value);
    length += value.byteLength;
    if (length > MAX_BYTES) {
      await unpacked.cancel();
      break;
    }
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return textOf(whole);
}

/** The text of a page, as far as it is shown. */
export function textOf(body: Uint8Array): PageContent {
  const isCut = body.byteLength > MAX_SHOWN_BYTES;
  const content = body as Uint8Array<ArrayBuffer>;
  const text = new TextDecoder().decode(isCut ? body.subarray(0, MAX_SHOWN_BYTES) : body);
  return { content, text, isCut, byteCount: body.byteLength };
}

/** Whether a content type, or its absence, is that of a text, whose source can be shown. */
export function isText(contentType: string): boolean {
  return contentType === '' || /text|json|xml|javascript|html/i.test(contentType);
}

/** The path of a picture: it is read from the service that the console came from. */
export function picturePath(url: string | undefined): string {
  if (url === undefined) return '';
  const { pathname, search } = new URL(url, location.origin);
  return pathname + search;
}
