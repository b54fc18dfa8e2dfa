import type { Socket } from 'node:net';

/** More of them in a row are left to the parser, which ends the connection. */
const MAX_SKIPPED = 8;
const MAX_HEAD_BYTES = 1_024;
const START = /^HTTP\/1\.[01] 100[ \r]/;
/** The beginning of a head up to where {@link START} is known to match or not. */
const START_BYTES = 'HTTP/1.1 100 '.length;
const END = '\r\n\r\n';
const NOTHING = Buffer.alloc(0);

/**
 * Drops `100 Continue` ahead of an answer on an HTTP/1.1 connection. No request here asks for it, and the
 * parser of undici ends the connection at one; a client has to take it (RFC 9110, 15.2).
 */
export function skipContinue(socket: Socket): void {
  const push = socket.push.bind(socket);
  let sentBytes = socket.bytesWritten;
  /** What came of an answer that may be a `100 Continue`; undefined once it is another one. */
  let head: Buffer | undefined;
  let skipped = 0;

  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return endOf(push, head);
    // The first bytes after a request begin its answer.
    if (socket.bytesWritten !== sentBytes) {
      sentBytes = socket.bytesWritten;
      skipped = 0;
      head = NOTHING;
    }
    if (head === undefined) return push(chunk);
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    for (;;) {
      const found = headOf(head, skipped);
      if (found === 'incomplete') return true;
      if (found === 'other') {
        const answer = head;
        head = undefined;
        return push(answer);
      }
      head = head.subarray(found);
      skipped += 1;
      if (head.length === 0) return true;
    }
  };
}

/** How long the `100 Continue` is that these bytes begin with. */
function headOf(bytes: Buffer, skipped: number): number | 'incomplete' | 'other' {
  const start = bytes.toString('latin1', 0, START_BYTES);
  if (skipped >= MAX_SKIPPED || !isPossible(start)) return 'other';
  const end = bytes.indexOf(END);
  if (end >= 0) return end + END.length;
  return bytes.length > MAX_HEAD_BYTES ? 'other' : 'incomplete';
}

function isPossible(start: string): boolean {
  return start.length < START_BYTES ? 'HTTP/1.'.startsWith(start.slice(0, 7)) : START.test(start);
}

/** The end of a connection is passed on after what was held back. */
function endOf(push: Socket['push'], head: Buffer | undefined): boolean {
  if (head !== undefined && head.length > 0) push(head);
  return push(null);
}
