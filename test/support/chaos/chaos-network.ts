import { connect, createServer, type Socket } from 'node:net';
import { listen } from '../listen.ts';
import { createNoise } from '../noise.ts';

/** A bad network between the processes of a fleet and their database. */
export interface ChaosNetwork extends AsyncDisposable {
  /** The server's URI by way of the network. */
  readonly uri: string;
  /**
   * Disturbs half of the connections: they pass nothing for `ms` and are reset after that, or they are
   * reset at once. Resolves when that is over.
   */
  disturb(ms: number): Promise<void>;
}

/** Most milliseconds that a connection delays each message in each direction. */
const MAX_DELAY_MS = 20;

interface Connection {
  stall(): void;
  reset(): void;
}

/** Opens a network to the server that `uri` names; what it does follows from `seed`. */
export async function openChaosNetwork(uri: string, seed: number): Promise<ChaosNetwork> {
  const noise = createNoise(seed);
  const { hostname, port } = new URL(uri);
  const connections = new Set<Connection>();
  const listener = createServer((client) => {
    const server = connect(Number(port || 27_017), hostname);
    const delayMs = noise.int(MAX_DELAY_MS + 1);
    const sockets = [client, server];
    const connection: Connection = {
      stall: () => sockets.forEach((socket) => void socket.pause()),
      reset: () => sockets.forEach((socket) => void socket.resetAndDestroy()),
    };
    connections.add(connection);
    passLate(client, server, delayMs);
    passLate(server, client, delayMs);
    for (const socket of sockets) {
      socket.on('error', () => undefined);
      socket.once('close', () => {
        connections.delete(connection);
        client.destroy();
        server.destroy();
      });
    }
  });
  const through = new URL(uri);
  through.hostname = '127.0.0.1';
  through.port = String((await listen(listener)).port);
  through.searchParams.set('directConnection', 'true');
  return {
    uri: through.href,
    async disturb(ms) {
      const half = [...connections].filter(() => noise.int(2) === 0);
      if (noise.int(2) === 0) {
        for (const each of half) each.stall();
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
      for (const each of half) each.reset();
    },
    async [Symbol.asyncDispose]() {
      for (const each of connections) each.reset();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** Timers of one length fire in the order of their start, so the bytes keep theirs. */
function passLate(from: Socket, to: Socket, delayMs: number): void {
  const late = (act: () => void): void =>
    void setTimeout(() => {
      if (!to.destroyed) act();
    }, delayMs);
  from.on('data', (chunk) => late(() => void to.write(chunk)));
  from.once('end', () => late(() => void to.end()));
}
