import { Agent } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectTarget } from './target-connector.ts';

/** Connections of plain HTTP that serve one request after the other. */
export interface KeptConnections {
  /** For requests that may be repeated when a kept connection turns out to be closed. */
  readonly kept: Agent;
  /** Makes a connection for each request. */
  readonly fresh: Agent;
  /** Makes one connection. */
  connect(target: ConnectTarget): Promise<Duplex>;
  /** Those to a target that serve no request now. */
  idleAt(target: ConnectTarget): readonly Duplex[];
}

/** For each target; browsers open as many. */
const MAX_IDLE = 6;

/** Makes an empty set; `connect` makes connections, and its caller closes them. */
export function createKeptConnections(
  connect: (target: ConnectTarget) => Promise<Duplex>,
): KeptConnections {
  function createAgent(keepAlive: boolean): Agent {
    const agent = new Agent({ keepAlive, maxFreeSockets: MAX_IDLE });
    agent.createConnection = ({ host, port }, callback) => {
      connect({ hostname: host ?? '', port: Number(port) }).then(
        (socket) => {
          // A connection through another proxy was paused once that proxy had answered.
          socket.resume();
          callback?.(null, socket);
        },
        // Without a connection there is only the error.
        (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
      );
      return undefined;
    };
    return agent;
  }

  const kept = createAgent(true);
  return {
    kept,
    fresh: createAgent(false),
    connect,
    idleAt: ({ hostname: host, port }) => kept.freeSockets[kept.getName({ host, port })] ?? [],
  };
}
