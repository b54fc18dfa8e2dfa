import { createServer, type Server } from 'node:http';
import { constants, createServer as createHttp2, type ServerHttp2Stream } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import type { EdgeLimits } from './edge-limits.ts';
import type { RequestHandler } from './routes.ts';

/** How the port speaks TLS. */
export interface EdgeTls {
  /** PEM text of the certificate chain. */
  readonly cert: string | Buffer;
  /** PEM text of its key. */
  readonly key: string | Buffer;
  /** The protocol for clients that offer both, by its name in ALPN. Default `h2`. */
  readonly preferred?: PreferredProtocol;
}

/** A protocol by its name in ALPN. */
export type PreferredProtocol = 'h2' | 'http/1.1';

/**
 * Makes the server of the port, which answers HTTP/1. With `tls` it speaks TLS, and ALPN selects the
 * protocol.
 */
export function createHttp1Server(
  limits: EdgeLimits,
  tls: EdgeTls | undefined,
  onRequest: RequestHandler,
): Server {
  const { headersTimeoutMs } = limits;
  const options = {
    headersTimeout: headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5_000),
    maxHeaderSize: limits.maxHeaderBytes,
    // `refuseMalformed` refuses such requests instead, with a body.
    requireHostHeader: false,
  };
  if (tls === undefined) return createServer(options, onRequest);
  const { preferred = 'h2', ...certificate } = tls;
  return createTlsServer(
    {
      ...options,
      ...certificate,
      // Streams of both directions and gRPC need h2, and their clients often offer both.
      ALPNProtocols: preferred === 'h2' ? ['h2', 'http/1.1'] : ['http/1.1', 'h2'],
      handshakeTimeout: headersTimeoutMs,
    },
    onRequest,
  );
}

/** Makes the server of HTTP/2 connections, which are passed to it; it does not listen. */
export function createHttp2Server(limits: EdgeLimits, onRequest: RequestHandler) {
  return createHttp2(
    {
      // A client that keeps to the limit exceeds it when it has closed streams that are open here.
      maxSessionRejectedStreams: 10_000,
      // MB. Node never takes off what a reset stream had not sent yet, and refuses every new stream of
      // the connection above the limit, 10 by default. Streams, headers and replies have limits here.
      maxSessionMemory: 2 ** 32 - 1,
      settings: {
        maxConcurrentStreams: limits.maxStreams,
        maxHeaderListSize: limits.maxHeaderBytes,
        // What a client may send before it is read is in no budget, and Node grants the window of
        // the connection anew at once. So each stream holds that much, of up to thousands that wait.
        initialWindowSize: 65_535,
      },
    },
    onRequest,
  );
}

/**
 * Closes a stream after its trailers even if the client has not ended its side; Node would wait for
 * that. The code says that the answer is complete (RFC 9113, 8.1).
 */
export function endWithTrailers(stream: ServerHttp2Stream): void {
  stream.once('wantTrailers', () => {
    setImmediate(() => {
      if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
    });
  });
}
