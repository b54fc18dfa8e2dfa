import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Most that is read and discarded after a refusal: a client that gets a reset while it sends never
 * sees the reply.
 */
const DRAIN = { bytes: 16 * 1024 * 1024, ms: 5_000 } as const;

interface Refused {
  readonly status: number;
  readonly phrase: string;
  readonly code: string;
  readonly error: string;
}

const invalid = (error: string): Refused => ({
  status: 400,
  phrase: 'Bad Request',
  code: 'invalid_http',
  error,
});

const expectation: Refused = {
  status: 417,
  phrase: 'Expectation Failed',
  code: 'expectation_failed',
  error: 'Expect may be 100-continue only.',
};

/**
 * Answers requests that the HTTP/1 parser refuses with a JSON error like every other: Node's own
 * replies have no body. `hasAnswered` says whether a reply has begun on a connection, which is
 * destroyed in that case.
 */
export function answerRefusedRequests(
  server: Server,
  limits: { readonly maxHeaderBytes: number },
  hasAnswered: (socket: Socket) => boolean,
): void {
  const refused = new WeakSet<Socket>();

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    // Every further piece fails in the parser again.
    if (refused.has(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable || hasAnswered(socket)) {
      socket.destroy();
      return;
    }
    refused.add(socket);
    socket.end(toHttpText(toRefusal(error.code, limits.maxHeaderBytes)));
    drain(socket);
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) =>
    refuse(response, expectation),
  );
}

const otherVersion: Refused = {
  status: 505,
  phrase: 'HTTP Version Not Supported',
  code: 'unsupported_http_version',
  error: 'The request line must end in HTTP/1.1 or HTTP/1.0.',
};

/**
 * Refuses what the HTTP/1 parser accepts against the rules: another version in the request line,
 * and HTTP/1.1 without a Host or with several (RFC 9112, 3.2). Also HTTP/1.0 with chunks (6.1), whose
 * end a proxy may see elsewhere. Returns true when it did.
 */
export function refuseMalformed(request: IncomingMessage, response: ServerResponse): boolean {
  const { httpVersion, headers } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') refuse(response, otherVersion);
  else if (httpVersion === '1.1' && headers.host === undefined) {
    refuse(response, invalid('The Host header is missing.'));
  } else if (hasSeveralHosts(request)) {
    refuse(response, invalid('There is more than one Host header.'));
  } else if (httpVersion === '1.0' && headers['transfer-encoding'] !== undefined) {
    refuse(response, invalid('HTTP/1.0 has no Transfer-Encoding.'));
  } else return false;
  return true;
}

function hasSeveralHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

function refuse(response: ServerResponse, { status, code, error }: Refused): void {
  const body = JSON.stringify({ error, code });
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  });
  response.end(body);
}

function toRefusal(code: string | undefined, maxHeaderBytes: number): Refused {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        status: 413,
        phrase: 'Content Too Large',
        code: 'request_line_too_large',
        error: `The request line and the headers are longer than ${maxHeaderBytes} bytes. Data for the target belongs into the body of the request.`,
      };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return {
        status: 408,
        phrase: 'Request Timeout',
        code: 'request_timeout',
        error: 'The request did not come in time.',
      };
    case 'HPE_INVALID_EOF_STATE':
      return {
        status: 400,
        phrase: 'Bad Request',
        code: 'incomplete_body',
        error: 'The request was cut short.',
      };
    case 'HPE_INVALID_URL':
    case 'HPE_INVALID_CONSTANT':
      return invalid(
        'The request line is not valid HTTP. What is not ASCII has to be percent-encoded, in the url parameter, too.',
      );
    default:
      return invalid('The request is not valid HTTP.');
  }
}

function toHttpText({ status, phrase, code, error }: Refused): string {
  const body = JSON.stringify({ error, code });
  return [
    `HTTP/1.1 ${status} ${phrase}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

function drain(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), DRAIN.ms).unref();
  const from = socket.bytesRead;
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroy());
  socket.on('data', () => {
    if (socket.bytesRead - from > DRAIN.bytes) socket.destroy();
  });
  socket.resume();
}
