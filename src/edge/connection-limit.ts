import type { Socket } from 'node:net';
import { addCount } from '../domain/add-count.ts';

/** Limits the number of connections, in total and from one address. */
export interface ConnectionLimit {
  /** Whether a new connection may stay; the caller destroys one that may not. */
  admit(socket: Socket): boolean;
}

/** The limits. */
export interface ConnectionBounds {
  readonly maxConnections: number;
  /** From one address. Loopback and proxies are exempt: a proxy connects for all clients. */
  readonly maxPerAddress: number;
  /** Whether the address is a proxy of the operator. */
  readonly isTrusted: (remote: string) => boolean;
}

/** Makes the limit; `onRefused` is called for refused connections. */
export function createConnectionLimit(
  bounds: ConnectionBounds,
  onRefused: (remote: string) => void,
): ConnectionLimit {
  const open = new Map<string, number>();
  let total = 0;

  return {
    admit(socket) {
      const remote = socket.remoteAddress ?? '';
      const ofAddress = open.get(remote) ?? 0;
      const isExempt = isLoopback(remote) || bounds.isTrusted(remote);
      const isCrowded = ofAddress >= bounds.maxPerAddress && !isExempt;
      if (total >= bounds.maxConnections || isCrowded) {
        onRefused(remote);
        socket.destroy();
        return false;
      }
      total += 1;
      addCount(open, remote, 1);
      socket.once('close', () => {
        total -= 1;
        addCount(open, remote, -1);
      });
      return true;
    },
  };
}

function isLoopback(remote: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/i.test(remote);
}
