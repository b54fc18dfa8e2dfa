import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AnyRequest, type AnyResponse, breakOff, isGone } from '../http/node-http.ts';
import { PIECE_BYTES, paced } from '../http/paced.ts';

/** A complete reply. Header names are in lower case. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole, or in pieces; the next piece is requested when the previous one has been written. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
}

/** The Content-Type of all JSON replies: clients compare the whole value. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Headers by which a browser keeps a page apart from those of other origins. */
export const SAME_ORIGIN: Readonly<Record<string, string>> = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

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

/** A page up to this length is answered as a whole, with a Content-Length. */
const WHOLE_BYTES = 64 * 1024;

/**
 * A reply of the JSON that is made of a page, in pieces. That of a long page is made while it is
 * sent, a piece in each turn of the event loop.
 */
export function envelopeReply(
  pieces: Iterable<Uint8Array>,
  page: Uint8Array,
  headers: Readonly<Record<string, string>>,
): Reply {
  const body = page.byteLength <= WHOLE_BYTES ? Buffer.concat([...pieces]) : inTurns(pieces);
  return { status: 200, headers: { ...jsonHeaders, ...headers }, body };
}

async function* inTurns(pieces: Iterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for (const piece of pieces) {
    yield piece;
    await nextTurn();
  }
}

/** Whether a body comes in pieces. */
export function isStreamed(body: Reply['body']): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && Symbol.asyncIterator in body;
}

/** The length of a whole body. */
export function byteCount(body: string | Uint8Array): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
}

/**
 * Sends a reply; HEAD gets no body. Does nothing when the client has disconnected. A long body is
 * written in pieces, and a client that reads nothing for half a minute is disconnected. Rejects
 * when a streamed body fails, after the reply has been aborted.
 */
export async function sendReply(
  request: AnyRequest,
  response: AnyResponse,
  reply: Reply,
): Promise<void> {
  if (isGone(response) || response.headersSent) return;
  const { body } = reply;
  // Both versions accept these arguments; the union of their overloads does not.
  const http1 = response as ServerResponse;
  const withNames = (headers: Record<string, string | number>) =>
    'stream' in response ? headers : titled(headers);
  if (isStreamed(body)) {
    http1.writeHead(reply.status, withNames({ ...reply.headers }));
    await writePieces(http1, body);
    return;
  }
  const length = byteCount(body);
  http1.writeHead(reply.status, withNames({ ...reply.headers, 'content-length': length }));
  if (request.method === 'HEAD') http1.end();
  else if (length <= PIECE_BYTES) http1.end(body);
  else await writePieces(http1, [typeof body === 'string' ? Buffer.from(body) : body]);
}

async function writePieces(
  response: ServerResponse,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  try {
    for await (const piece of paced(chunks, () => breakOff(response))) {
      if (!(await written(response, piece))) return;
    }
    response.end();
  } catch (error) {
    // The status has been sent, so aborting is the only way to signal that the reply is incomplete.
    breakOff(response);
    throw error;
  }
}

/** Writes a piece. Resolves with false when the client has disconnected. */
function written(response: ServerResponse, piece: Uint8Array): Promise<boolean> {
  if (isGone(response)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const gone = (): void => resolve(false);
    response.once('close', gone);
    response.write(piece, (error) => {
      response.off('close', gone);
      resolve(error === undefined || error === null);
    });
  });
}

// Names that clients look up in this spelling; HTTP/2 allows lower case only.
const titles: ReadonlyMap<string, string> = new Map([
  ['content-type', 'Content-Type'],
  ['content-encoding', 'Content-Encoding'],
  ['content-length', 'Content-Length'],
  ['retry-after', 'Retry-After'],
  ['www-authenticate', 'WWW-Authenticate'],
  ['allow', 'Allow'],
]);

/**
 * HTTP/1.1 headers in the spelling that clients compare: several SDKs look for `Content-Type`
 * case-sensitively.
 */
function titled(headers: Readonly<Record<string, string | number>>) {
  const spelled: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(headers)) spelled[titles.get(name) ?? name] = value;
  return spelled;
}
