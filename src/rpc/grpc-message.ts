import type { ServerResponse } from 'node:http';
import { Code } from '@connectrpc/connect';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';

/**
 * Answers gRPC and gRPC-Web with INVALID_ARGUMENT and a fixed text. Connect quotes the message in
 * its error text, and cannot write that into a header when the quoted part ends within a character.
 */
export function refuseWithFixedText(request: AnyRequest, response: AnyResponse): void {
  response.statusCode = 200;
  response.setHeader('content-type', request.headers['content-type'] ?? 'application/grpc');
  response.setHeader('grpc-status', String(Code.InvalidArgument));
  response.setHeader('grpc-message', 'The message is malformed.');
  // Headers that are sent by `end` are the end of the stream over HTTP/2, as gRPC requires here.
  response.end();
}

/**
 * Restricts the percent-encoding of the grpc-message trailer to what gRPC requires. Connect encodes
 * commas, colons and slashes as well, which clients that decode with decodeURI (grpc-js) display as
 * `%2C`.
 */
export function writePlainMessages(response: AnyResponse): void {
  const http1 = response as ServerResponse;
  const addTrailers = http1.addTrailers.bind(http1);
  http1.addTrailers = (trailers) => {
    const { 'grpc-message': message, ...rest } = trailers as Record<string, string>;
    if (message === undefined) addTrailers(trailers);
    else addTrailers({ ...rest, 'grpc-message': plainMessage(message) });
  };
}

/** A percent-encoded grpc-message in the encoding of {@link writePlainMessages}. */
export function plainMessage(message: string): string {
  return decodeURIComponent(message).replace(/[^\x20-\x24\x26-\x7e]+/gu, encodeURIComponent);
}
