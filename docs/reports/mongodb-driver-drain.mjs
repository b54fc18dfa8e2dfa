// Shows that MongoClient never connects again after the server has ended all of its connections.
// It needs no MongoDB server: the server below answers `hello` and holds back one `find`.
// Run it where `mongodb` is installed: node mongodb-driver-drain.mjs
import { createServer } from 'node:net';
import { BSON, MongoClient } from 'mongodb';

const WATCH_MS = Number(process.env.WATCH_MS ?? 30_000);
const HELLO = {
  ok: 1,
  helloOk: true,
  isWritablePrimary: true,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  minWireVersion: 0,
  maxWireVersion: 21,
};

let finds = Promise.withResolvers();
const sockets = new Map();
const server = createServer((socket) => {
  sockets.set(socket, 'monitor');
  socket.on('error', () => undefined);
  socket.on('close', () => sockets.delete(socket));
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 16 && rest.length >= rest.readInt32LE(0)) {
      const message = rest.subarray(0, rest.readInt32LE(0));
      rest = rest.subarray(message.length);
      answer(socket, message);
    }
  });
});

function answer(socket, message) {
  const isQuery = message.readInt32LE(12) === 2004;
  const start = isQuery ? message.indexOf(0, 20) + 9 : 21;
  const command = BSON.deserialize(message.subarray(start, start + message.readInt32LE(start)));
  if (command.find !== undefined) {
    sockets.set(socket, 'pool');
    finds.resolve();
    return;
  }
  const body = BSON.serialize(HELLO);
  const head = Buffer.alloc(isQuery ? 36 : 21);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(message.readInt32LE(4), 8);
  head.writeInt32LE(isQuery ? 1 : 2013, 12);
  if (isQuery) head.writeInt32LE(1, 32);
  socket.write(Buffer.concat([head, body]));
}

await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address();
const uri = `mongodb://127.0.0.1:${port}`;
const options = {
  serverSelectionTimeoutMS: 2_000,
  socketTimeoutMS: 5_000,
  connectTimeoutMS: 5_000,
};

/** What becomes of the promise, within `WATCH_MS`. */
async function outcome(promise) {
  const began = Date.now();
  const late = new Promise((resolve) => setTimeout(resolve, WATCH_MS, 'is not settled'));
  const settled = promise.then(
    () => 'is answered',
    (error) => `fails: ${error.name}: ${error.message}`,
  );
  const text = await Promise.race([settled, late]);
  return `${text} (after ${((Date.now() - began) / 1000).toFixed(1)} s)`;
}

/** The monitor's `hello` is written when the pool's connection has told of its end, and the monitor's has not yet. */
async function monitor() {
  const client = new MongoClient(uri, options);
  await client.connect();
  // The monitor looks again at once only when its last look is more than 500 ms ago.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const find = client.db('test').collection('test').findOne({});
  find.catch(() => undefined);
  await finds.promise;
  // A clean end of all connections in one moment. Node closes the last one first.
  const monitorFirst = [...sockets].sort(([, a], [, b]) => a.localeCompare(b));
  for (const [socket] of monitorFirst) socket.end();
  const began = Date.now();
  let end = '';
  while (Date.now() - began < WATCH_MS && !end.startsWith('is answered')) {
    end = await outcome(client.db('test').command({ ping: 1 }));
    console.log(`monitor: ping ${end}`);
  }
  const fresh = new MongoClient(uri, options);
  console.log(
    `monitor: ping of a new client ${await outcome(fresh.db('test').command({ ping: 1 }))}`,
  );
  await fresh.close();
  return end;
}

/** A command of one client is written when a socket of another has told of its end, and its own has not yet. */
async function command() {
  const idle = new MongoClient(uri, options);
  await idle.db('test').command({ ping: 1 });
  finds = Promise.withResolvers();
  const busy = new MongoClient(uri, { ...options, retryReads: false });
  const find = busy.db('test').collection('test').findOne({});
  await finds.promise;
  const ping = find.catch(() => outcome(idle.db('test').command({ ping: 1 })));
  for (const socket of sockets.keys()) socket.end();
  const end = await ping;
  console.log('command: ping', end);
  return end;
}

const ends = [await monitor(), await command()];
process.exit(ends.every((end) => end.startsWith('is answered')) ? 0 : 1);
