import type { ServerResponse } from 'node:http';
import { type AnyRequest, type AnyResponse, isGone } from '../rpc/node-http.ts';

/** A whole answer. Header names in lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** The one Content-Type of JSON replies: clients compare the whole value. */
export const JSON_TYPE = 'application/json; charset=utf-8';

const jsonHeaders = { 'content-type': JSON_TYPE };

/** A reply of JSON text. */
export function jsonReply(
  text: string,
  status = 200,
  headers?: Readonly<Record<string, string>>,
): Reply {
  return {
    status,
    headers: headers === undefined ? jsonHeaders : { ...jsonHeaders, ...headers },
    body: text,
  };
}

/** Sends a reply, without its body to HEAD. Does nothing when the client has gone. */
export function sendReply(request: AnyRequest, response: AnyResponse, reply: Reply): void {
  if (isGone(response) || response.headersSent) return;
  const { body } = reply;
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
  // Both versions take these arguments; only the union of their overloads does not.
  const http1 = response as ServerResponse;
  const headers = { ...reply.headers, 'content-length': length };
  http1.writeHead(reply.status, 'stream' in response ? headers : titled(headers));
  if (request.method === 'HEAD') http1.end();
  else http1.end(body);
}

// Names that clients look up in this spelling; over HTTP/2 there is no other than lower case.
const titles: ReadonlyMap<string, string> = new Map([
  ['content-type', 'Content-Type'],
  ['content-encoding', 'Content-Encoding'],
  ['content-length', 'Content-Length'],
  ['retry-after', 'Retry-After'],
  ['www-authenticate', 'WWW-Authenticate'],
  ['allow', 'Allow'],
]);

/** Headers of HTTP/1.1 in the spelling that clients compare: several SDKs look for `Content-Type` letter by letter. */
function titled(headers: Readonly<Record<string, string | number>>) {
  const spelled: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(headers)) spelled[titles.get(name) ?? name] = value;
  return spelled;
}

const unsafeInHeader = /[^\x20-\x7e]+/g;

/** `text` with everything but printable ASCII percent-encoded as UTF-8, so that it can stand in a header. */
export function headerSafe(text: string): string {
  if (!/[^\x20-\x7e]/.test(text)) return text;
  return text.replace(unsafeInHeader, (part) =>
    [...Buffer.from(part)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
      .join(''),
  );
}
