import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';

/** The number of sessions that a connector of undici remembers. */
export const MAX_CACHED_SESSIONS = 2;

/**
 * Keeps the latest TLS session of the sockets that it is called with. The next handshake with their
 * server resumes it. undici holds sessions by weak references, which the next garbage collection ends.
 * A full handshake takes four times the processor time.
 */
export function createSessionKeeper(): (socket: Socket) => void {
  const kept: Buffer[] = [];
  return (socket) =>
    void socket.on('session', (session: Buffer) => {
      kept[0] = session;
    });
}

const contexts = new Map<string | undefined, SecureContext>();

/**
 * What connections with these certificate authorities share; Node would make it for each, which takes
 * a tenth of a handshake.
 */
export function sharedSecureContext(ca: string | undefined): SecureContext {
  const context = contexts.get(ca) ?? createSecureContext(ca === undefined ? {} : { ca });
  contexts.set(ca, context);
  return context;
}
