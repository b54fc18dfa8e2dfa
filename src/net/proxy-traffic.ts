import type { Socket } from 'node:net';
import { getOrInsert } from '../domain/get-or-insert.ts';

/** Bytes through a proxy. */
export interface Traffic {
  readonly received: number;
  readonly sent: number;
}

/** What passed through the proxy of a crawl, as far as is known when it ends. */
export interface CrawlTraffic extends Traffic {
  /**
   * Bytes of the crawl itself, in both directions: heads and bodies of its requests and responses.
   * The others are those of connections, which crawls share.
   */
  readonly own: number;
}

/** Counts the bytes of the connections through each proxy. */
export interface ProxyTraffic {
  /** Counts those of a connection, from now until it is closed. */
  track(proxyUrl: string, socket: Socket): void;
  /** What passed since it was last asked about this proxy. */
  take(proxyUrl: string): Traffic;
}

interface Counted {
  readonly open: Set<Socket>;
  /** Of closed connections. */
  received: number;
  sent: number;
  /** What was taken. */
  taken: Traffic;
}

/** Makes the count. What no connection needs any more and was taken is forgotten. */
export function createProxyTraffic(): ProxyTraffic {
  const byProxy = new Map<string, Counted>();
  return {
    track(proxyUrl, socket) {
      const counted = getOrInsert(byProxy, proxyUrl, () => ({
        open: new Set<Socket>(),
        received: 0,
        sent: 0,
        taken: NOTHING,
      }));
      counted.open.add(socket);
      socket.once('close', () => {
        counted.open.delete(socket);
        counted.received += socket.bytesRead;
        counted.sent += socket.bytesWritten;
      });
    },
    take(proxyUrl) {
      const counted = byProxy.get(proxyUrl);
      if (counted === undefined) return NOTHING;
      let { received, sent } = counted;
      for (const socket of counted.open) {
        received += socket.bytesRead;
        sent += socket.bytesWritten;
      }
      const { taken } = counted;
      counted.taken = { received, sent };
      if (counted.open.size === 0) byProxy.delete(proxyUrl);
      return { received: received - taken.received, sent: sent - taken.sent };
    },
  };
}

const NOTHING: Traffic = { received: 0, sent: 0 };
