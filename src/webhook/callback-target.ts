import type { HeaderPair } from '../domain/job.ts';

/** Where a POST goes. */
export interface CallbackTarget {
  /** Without credentials. */
  readonly url: string;
  readonly hostname: string;
  /** The headers with `Authorization: Basic` when the callback URL has credentials and no header says otherwise. */
  withCredentials(headers: readonly HeaderPair[]): readonly HeaderPair[];
}

/** Reads a crawler's callback URL; undefined when there is none to send to. */
export function callbackTarget(callbackUrl: string | undefined): CallbackTarget | undefined {
  const url = URL.parse(callbackUrl ?? '');
  if (url === null) return undefined;
  const { username, password } = url;
  url.username = '';
  url.password = '';
  return {
    url: url.href,
    hostname: url.hostname,
    withCredentials(headers) {
      const isGiven = headers.some(([name]) => name.toLowerCase() === 'authorization');
      if ((username === '' && password === '') || isGiven) return headers;
      const credentials = `${decoded(username)}:${decoded(password)}`;
      return [
        ...headers,
        ['Authorization', `Basic ${Buffer.from(credentials).toString('base64')}`],
      ];
    },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that begins no escape stands for itself.
    return text;
  }
}
