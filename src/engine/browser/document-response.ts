import type { Protocol } from 'devtools-protocol';
import type { HeaderPair } from '../../domain/job.ts';
import { headerValues } from '../../net/raw-headers.ts';

/** The response that a document of a page came with. */
export interface DocumentResponse {
  readonly url: string;
  readonly status: number;
  /** Names in lower case. */
  readonly headers: readonly HeaderPair[];
  /** The browser's id of the request and its redirects. */
  readonly networkId: string | undefined;
  /** The body of a response that is not HTML: it is the page. */
  readonly body?: Uint8Array;
}

/** The response of a paused request, without its body. */
export function toDocumentResponse(event: Protocol.Fetch.RequestPausedEvent): DocumentResponse {
  const headers = (event.responseHeaders ?? []).map(
    ({ name, value }) => [name.toLowerCase(), value] as const,
  );
  return {
    url: event.request.url,
    status: event.responseStatusCode ?? 0,
    headers,
    networkId: event.networkId,
  };
}

/** The last value of a header; `name` is in lower case. */
export function lastHeader(response: DocumentResponse, name: string): string | undefined {
  return headerValues(response.headers, name).at(-1);
}
