import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isMainThread } from 'node:worker_threads';

// Loaded with `node --import` before the service. Counts the commands that the MongoDB driver of
// the process sends, and answers any request on a port of its own with the counts as JSON. The port
// is the line `Commands: URL` on standard output.

/** What the driver asks for itself, to watch the server. */
const OWN = new Set(['hello', 'ismaster', 'isMaster', 'ping', 'endSessions', 'buildInfo']);

const counts: Record<string, number> = {};

/** The part of the driver's connection that each command passes. */
interface CommandSender {
  command(ns: unknown, command: Record<string, unknown>, ...rest: unknown[]): unknown;
}

async function countCommands(): Promise<void> {
  // The driver has no types for its files.
  const path = 'mongodb/lib/cmap/connection.js';
  const { Connection } = (await import(path)) as {
    Connection: { prototype: CommandSender };
  };
  const { command: send } = Connection.prototype;
  Connection.prototype.command = function command(ns, sent, ...rest) {
    const [name = ''] = Object.keys(sent);
    if (!OWN.has(name)) {
      const on = name === 'getMore' ? sent.collection : sent[name];
      const key = typeof on === 'string' ? `${name} ${on}` : name;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return send.call(this, ns, sent, ...rest);
  };
}

// Threads of the service do not use the database.
if (isMainThread) {
  await countCommands();
  const server = createServer((_request, response) => {
    response.writeHead(200, { connection: 'close' }).end(JSON.stringify(counts));
  });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`Commands: http://127.0.0.1:${port}\n`);
  });
  server.unref();
}
