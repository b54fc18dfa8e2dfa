import { connect, createServer, type Server, type Socket } from 'node:net';
import { BSON, type Document } from 'mongodb';
import { listen } from './listen.ts';

/** A command as a server gets it: its fields, with the documents of its batches under their names. */
export type Command = Document;

/** One command that is held back. */
export interface HeldCommand {
  /** Resolves with the command when it has come. */
  readonly reached: Promise<Command>;
  /** Forwards it to the server. */
  release(): void;
}

/**
 * A way to MongoDB on which a test can stop one command, as if the process that sent it had been
 * stopped there, and release it later. The server does not see the command before.
 */
export interface MongoGate extends AsyncDisposable {
  /** The server's URI by way of the gate. */
  readonly uri: string;
  /** Holds the next command that matches. */
  hold(matches: (command: Command) => boolean): HeldCommand;
  /** Lets the next command that matches be done, and cuts its connection instead of answering. */
  loseAnswer(matches: (command: Command) => boolean): { readonly lost: Promise<void> };
  /** Cuts the connection of each command that matches before it is done, until the returned function is called. */
  refuse(matches: (command: Command) => boolean): () => void;
  /** Ends all connections in good order and in one moment, those that came first before the others. */
  endAll(): void;
}

const OP_MSG = 2013;
const HEADER_BYTES = 16;

interface Rule {
  readonly matches: (command: Command) => boolean;
  readonly once: boolean;
  readonly act: (command: Command, pass: () => void, client: Socket, server: Socket) => void;
}

/** Opens a gate to the server that `uri` names. */
export async function openMongoGate(uri: string): Promise<MongoGate> {
  const { hostname, port } = new URL(uri);
  const through = new URL(uri);
  const rules: Rule[] = [];
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const listener: Server = createServer((client) => {
    const server = connect(Number(port || 27_017), hostname);
    clients.add(client);
    client.once('close', () => clients.delete(client));
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    server.pipe(client);
    forward(client, server, rules);
  });
  const { port: gatePort } = await listen(listener);
  through.hostname = '127.0.0.1';
  through.port = String(gatePort);
  through.searchParams.set('directConnection', 'true');

  return {
    uri: through.href,
    hold(matches) {
      const reached = Promise.withResolvers<Command>();
      const released = Promise.withResolvers<void>();
      rules.push({
        matches,
        once: true,
        act(command, pass) {
          reached.resolve(command);
          void released.promise.then(pass);
        },
      });
      return { reached: reached.promise, release: () => released.resolve() };
    },
    loseAnswer(matches) {
      const lost = Promise.withResolvers<void>();
      rules.push({
        matches,
        once: true,
        act(_command, pass, client, server) {
          server.unpipe(client);
          server.once('data', () => {
            client.destroy();
            lost.resolve();
          });
          server.resume();
          pass();
        },
      });
      return { lost: lost.promise };
    },
    refuse(matches) {
      const rule: Rule = { matches, once: false, act: (_c, _pass, client) => client.destroy() };
      rules.push(rule);
      return () => void rules.splice(rules.indexOf(rule), 1);
    },
    endAll() {
      for (const client of clients) client.end();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** Passes a client's messages on, one after the other, each when its rule lets it. */
function forward(client: Socket, server: Socket, rules: Rule[]): void {
  let rest: Buffer = Buffer.alloc(0);
  client.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES && rest.length >= rest.readInt32LE(0)) {
      const message = rest.subarray(0, rest.readInt32LE(0));
      rest = rest.subarray(message.length);
      const pass = (): void => {
        if (!server.destroyed) server.write(message);
      };
      const command = rules.length > 0 ? commandOf(message) : undefined;
      const rule = command && rules.find((each) => each.matches(command));
      if (command === undefined || rule === undefined) pass();
      else {
        if (rule.once) rules.splice(rules.indexOf(rule), 1);
        rule.act(command, pass, client, server);
      }
    }
  });
}

/** The command of an OP_MSG message; undefined for any other. */
function commandOf(message: Buffer): Command | undefined {
  if (message.readInt32LE(12) !== OP_MSG) return undefined;
  const command: Command = {};
  let offset = HEADER_BYTES + 4;
  while (offset < message.length) {
    const kind = message[offset];
    offset += 1;
    const size = message.readInt32LE(offset);
    if (kind === 0) {
      Object.assign(command, BSON.deserialize(message.subarray(offset, offset + size)));
    } else {
      const end = offset + size;
      const nameEnd = message.indexOf(0, offset + 4);
      const documents: Document[] = [];
      for (let at = nameEnd + 1; at < end; at += message.readInt32LE(at)) {
        documents.push(BSON.deserialize(message.subarray(at, at + message.readInt32LE(at))));
      }
      command[message.toString('utf8', offset + 4, nameEnd)] = documents;
    }
    offset += size;
  }
  return command;
}

/** Matches the commands `name` on a collection, whose text has all the given parts. */
export function commandOn(name: string, collection: string, ...parts: string[]) {
  return (command: Command): boolean => {
    if (command[name] !== collection) return false;
    const text = JSON.stringify(command);
    return parts.every((part) => text.includes(part));
  };
}
