import http2 from 'node:http2';

const { NGHTTP2_CANCEL } = http2.constants;
type Connect = typeof http2.connect;

/**
 * Makes HTTP/2 streams that are closed before their body was sent say so (`CANCEL`). undici closes those that it
 * aborts without a code, and destroys them at once. Node then sends no reset. As soon as the server's window has
 * room, it writes empty frames of the body to memory without an end, and the thread does nothing else any more.
 */
export function cancelUnsentStreams(): void {
  const { connect } = http2;
  const connecting = (...given: Parameters<Connect>): ReturnType<Connect> => {
    const session = connect(...given);
    const request = session.request.bind(session);
    session.request = (...headersAndOptions) => {
      const stream = request(...headersAndOptions);
      const close = stream.close.bind(stream);
      stream.close = (code, callback) =>
        close(code ?? (stream.writableFinished ? undefined : NGHTTP2_CANCEL), callback);
      return stream;
    };
    return session;
  };
  // undici takes the function from this object for each connection.
  Object.assign(http2, { connect: connecting });
}
