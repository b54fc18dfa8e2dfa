import { constants } from 'node:http2';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';

/**
 * Demands HTTP/1.1 for a request over HTTP/2 (RFC 9113, 7) when its client compares header names letter
 * by letter, and returns whether it did. HTTP/2 writes names in lower case. libcurl then repeats the request
 * over HTTP/1.1 by itself. Only for TLS, where the client can offer HTTP/1.1 alone.
 */
export function demandHttp1(request: AnyRequest, response: AnyResponse): boolean {
  if (!('stream' in response) || !comparesHeaderNames(request)) return false;
  response.stream.close(constants.NGHTTP2_HTTP_1_1_REQUIRED);
  return true;
}

/**
 * Whether it is the public SDK for PHP, which reads `Content-Type` in this spelling. It uses libcurl,
 * names no user agent, and writes its encodings in this way.
 */
function comparesHeaderNames({ headers }: AnyRequest): boolean {
  return (
    headers['user-agent'] === undefined &&
    headers.accept === '*/*' &&
    headers['accept-encoding'] === 'gzip,deflate'
  );
}
