import type { Protocol } from 'devtools-protocol';
import { defined } from '../../domain/defined.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { readStream } from './read-stream.ts';
import type { BrowserPage } from './running-browser.ts';

/** A request that the browser holds until it is told how to proceed. */
export type PausedRequest = Pick<Protocol.Fetch.RequestPausedEvent, 'requestId'>;

/** Longer than any crawl: a slow site is ended by the time limit of the crawl. */
const MAX_READ_MS = 600_000;

/** Lets a request, or the response to it, proceed; `headers` replace those of the request. */
export async function continueRequest(
  page: BrowserPage,
  { requestId }: PausedRequest,
  headers?: readonly HeaderPair[],
): Promise<void> {
  const replaced = headers?.map(([name, value]) => ({ name, value }));
  await page.send('Fetch.continueRequest', { requestId, ...defined({ headers: replaced }) });
}

/** Ends a request; the document that is shown stays. */
export async function abortRequest(page: BrowserPage, { requestId }: PausedRequest): Promise<void> {
  await page.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
}

/** Gives the browser this body in place of the response. */
export async function fulfillRequest(
  page: BrowserPage,
  { requestId }: PausedRequest,
  response: {
    readonly status: number;
    readonly contentType: string;
    readonly body: Uint8Array;
  },
): Promise<void> {
  await page.send('Fetch.fulfillRequest', {
    requestId,
    responseCode: response.status,
    responseHeaders: [{ name: 'content-type', value: response.contentType }],
    body: Buffer.from(response.body).toString('base64'),
  });
}

/** Reads the body of a response; undefined when it is longer than `maxBytes`. */
export async function readResponseBody(
  page: BrowserPage,
  { requestId }: PausedRequest,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  const { stream: handle } = await page.send('Fetch.takeResponseBodyAsStream', { requestId });
  const body = await readStream(page, handle, maxBytes, MAX_READ_MS);
  if (body === undefined) await page.send('IO.close', { handle });
  return body;
}
