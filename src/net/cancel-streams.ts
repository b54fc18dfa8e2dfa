import http2 from 'node:http2';

type Connect = typeof http2.connect;

/**
 * Ends the HTTP/2 connection of a stream that is aborted before its body was sent. undici closes such a stream without
 * a code and destroys it at once. Node then writes empty frames of the body to memory without an end, as soon as
 * the server's window has room, and the thread does nothing else any more. With a code it still does so for
 * bodies that are sent in pieces.
 */
export function cancelUnsentStreams(): void {
  const { connect } = http2;
  const connecting = (...given: Parameters<Connect>): ReturnType<Connect> => {
    const session = connect(...given);
    const request = session.request.bind(session);
    session.request = (...headersAndOptions) => {
      const stream = request(...headersAndOptions);
      const close = stream.close.bind(stream);
      stream.close = (code, callback) => {
        const isUnsent = stream.writableLength > 0 || !stream.writableEnded;
        if (code === undefined && isUnsent && !stream.destroyed) session.destroy();
        else close(code, callback);
      };
      return stream;
    };
    return session;
  };
  // undici takes the function from this object for each connection.
  Object.assign(http2, { connect: connecting });
}
