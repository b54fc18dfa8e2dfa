import type { Socket } from 'node:net';
import { createChunkRepair } from './repair-chunks.ts';

/** Headers that say how long a body is or what becomes of the connection. */
const FRAMING = /^(?:content-length|connection|keep-alive|upgrade)$/;
/** Without chunks it means nothing: `identity` and the like. */
const CODED = /^transfer-encoding$/i;
const STATUS_LINE = /^(?:HTTP\/\d\.\d|ICY) +(\d{3})\b/i;
/** The next response follows these. */
const INTERIM = /^HTTP\/\d\.\d +1(?!01)\d\d\b/i;
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** What a value cannot have: control characters except tab. */
const CONTROLS = /[^\t\x20-\x7e\x80-\xff]/g;
const NOTHING = Buffer.alloc(0);

/**
 * Rewrites the head of the one response that a socket receives, so that a strict parser takes what
 * Chromium takes. In the head these are folded headers, spaces before a colon, lines without one,
 * bare line feeds and control characters. In the framing they are equal lengths, a length with
 * chunks, and spaces behind the sizes of chunks. The others are Icecast's status line, and 1xx
 * responses that nobody asked for. What cannot be repaired within `maxBytes` is passed on as it is.
 */
export function repairResponse(socket: Socket, maxBytes: number): void {
  const push = socket.push.bind(socket);
  let head: Buffer | undefined = NOTHING;
  let repairBody = (bytes: Buffer): Buffer => bytes;
  let skippedBytes = 0;
  /** Bytes of the head in which its end was not found. */
  let searchedBytes = 0;

  socket.push = (chunk: Buffer | null) => {
    if (head === undefined) {
      const bytes = chunk && repairBody(chunk);
      // An empty piece says that nothing more is to come for now.
      return bytes?.length === 0 ? true : push(bytes);
    }
    if (chunk !== null) head = Buffer.concat([head, chunk]);
    for (;;) {
      const end = endOfHead(head, searchedBytes);
      const isOver = chunk === null || skippedBytes + head.length > maxBytes;
      if (end === undefined && !isOver) {
        searchedBytes = head.length;
        return true;
      }
      const text = head.toString('latin1', 0, end ?? 0);
      if (end === undefined || !INTERIM.test(text) || isOver) {
        const rest = head.subarray(end ?? 0);
        head = undefined;
        const repaired = repairHead(text);
        if (repaired?.isChunked === true) repairBody = createChunkRepair();
        const bytes = Buffer.from(repaired?.text ?? text, 'latin1');
        push(Buffer.concat([bytes, repairBody(rest)]));
        return chunk === null ? push(null) : true;
      }
      skippedBytes += end;
      searchedBytes = 0;
      head = head.subarray(end);
    }
  };
}

/**
 * Where the body begins; undefined when the head is not complete. The first `searched` bytes were searched
 * before: a head that comes byte by byte is not searched again with each.
 */
function endOfHead(bytes: Buffer, searched: number): number | undefined {
  // An end that was cut has three bytes at most, of which the last is new.
  for (
    let at = bytes.indexOf('\n', Math.max(0, searched - 2));
    at >= 0;
    at = bytes.indexOf('\n', at + 1)
  ) {
    if (bytes[at + 1] === 0x0a) return at + 2;
    if (bytes[at + 1] === 0x0d && bytes[at + 2] === 0x0a) return at + 3;
  }
  return undefined;
}

/** The head by the rules of HTTP; undefined when it is not HTTP, or leaves the body's length open. */
function repairHead(text: string): { text: string; isChunked: boolean } | undefined {
  const [first = '', ...lines] = text.split(/\r?\n/);
  const status = STATUS_LINE.exec(first)?.[1];
  if (status === undefined) return undefined;
  const headers = parseLines(lines);
  const isChunked = headers.some(
    ({ name, value }) => name.toLowerCase() === 'transfer-encoding' && /chunked/i.test(value),
  );
  const lengths = new Set(
    headers
      .filter(({ name }) => name.toLowerCase() === 'content-length')
      .flatMap(({ value }) => value.split(',').map((each) => each.trim())),
  );
  // Chunks count before a length. Of two lengths nobody knows which is right.
  if (lengths.size > 1 && !isChunked) return undefined;
  const [length] = lengths;
  const isLength = length !== undefined && /^\d+$/.test(length) && !isChunked;
  const repaired = [
    `HTTP/1.1 ${status} -`,
    ...headers
      .filter(({ name }) => !FRAMING.test(name.toLowerCase()) && (isChunked || !CODED.test(name)))
      .map(({ name, value }) => `${name}: ${value}`),
    ...(isLength ? [`content-length: ${length}`] : []),
    'connection: close\r\n\r\n',
  ].join('\r\n');
  return { text: repaired, isChunked };
}

function parseLines(lines: readonly string[]): { name: string; value: string }[] {
  const headers: { name: string; value: string }[] = [];
  for (const line of lines) {
    const text = line.replace(CONTROLS, '').trim();
    const last = headers.at(-1);
    if (/^[ \t]/.test(line)) {
      if (last !== undefined && text !== '') last.value += ` ${text}`;
      continue;
    }
    const colon = text.indexOf(':');
    const name = text.slice(0, Math.max(0, colon)).trim();
    if (TOKEN.test(name)) headers.push({ name, value: text.slice(colon + 1).trim() });
  }
  return headers;
}
