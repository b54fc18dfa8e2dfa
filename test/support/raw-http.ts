import { once } from 'node:events';
import { connect } from 'node:net';

/** An answer in the bytes of the wire. */
export interface RawReply {
  readonly status: number;
  /** Names and values as they were spelled. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/**
 * Sends bytes to a port of 127.0.0.1 and reads until the connection is closed; `Connection: close` belongs into the
 * request. `isCut` ends the client's side of the connection after them.
 */
export async function rawRequest(
  port: number,
  request: string | Buffer,
  { isCut = false } = {},
): Promise<RawReply> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
  // Whatever came before a reset counts.
  socket.on('error', () => undefined);
  if (isCut) socket.end(request);
  else socket.write(request);
  await once(socket, 'close');
  const bytes = Buffer.concat(chunks);
  const end = bytes.indexOf('\r\n\r\n');
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  return {
    status: Number(first.split(' ')[1]),
    headers: new Map(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      }),
    ),
    body: bytes.subarray(end + 4),
  };
}

/** A GET by HTTP/1.1 that ends its connection, with further header lines. */
export function rawGet(path: string, ...headers: string[]): string {
  const lines = [`GET ${path} HTTP/1.1`, 'Host: service', 'Connection: close', ...headers];
  return `${lines.join('\r\n')}\r\n\r\n`;
}
