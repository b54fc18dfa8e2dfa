import type { HeaderPair } from '../../domain/job.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import type { CdpHandlers } from './cdp-connection.ts';
import type { DocumentResponse } from './document-response.ts';

/** The `Set-Cookie` headers of responses, which the browser reports only among network events. */
export interface ResponseCookies {
  readonly handlers: CdpHandlers;
  /** The `Set-Cookie` headers of a response, if they were reported. */
  setCookies(response: DocumentResponse): readonly HeaderPair[];
}

const MAX_RESPONSES = 200;

/** Makes a collection without headers; it needs the events of `Network.enable`. */
export function createResponseCookies(): ResponseCookies {
  /** Lines of `Set-Cookie` values of the last response to each request. */
  const cookies = createLruMap<string, string>({ maxEntries: MAX_RESPONSES });
  return {
    handlers: {
      'Network.responseReceivedExtraInfo'({ requestId, headers }) {
        const [, value = ''] =
          Object.entries(headers).find(([name]) => name.toLowerCase() === 'set-cookie') ?? [];
        cookies.set(requestId, value);
      },
    },
    setCookies: ({ networkId }) =>
      (cookies.get(networkId ?? '') ?? '')
        .split('\n')
        .filter((value) => value !== '')
        .map((value) => ['set-cookie', value]),
  };
}
