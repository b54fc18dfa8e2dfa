import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { eventually } from './eventually.ts';
import { listen } from './listen.ts';

/** One POST as it arrived. */
export interface ReceivedPost {
  /** Path with its query. */
  readonly path: string;
  /** Names in lower case; repeated ones joined by node's rules. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in the spelling and order of the wire. */
  readonly headerList: readonly (readonly [string, string])[];
  /** The body's bytes as sent. */
  readonly rawBody: Buffer;
  /** The body, decompressed when `Content-Encoding` is gzip, as UTF-8. */
  readonly text: string;
  /** The parsed `text`, undefined when it is not JSON. */
  readonly json: unknown;
  /** The `rid` header, empty without one. */
  readonly rid: string;
  /** When the whole body had arrived. */
  readonly at: Date;
  /** The port it was sent from: the same port is the same connection. */
  readonly remotePort: number | undefined;
}

/** How the receiver answers one POST. Fields combine; without any it is 200 with an empty body, at once. */
export interface ReceiverAnswer {
  /** Default 200, or 302 with `redirect`. */
  readonly status?: number;
  /** Wait between the last byte of the body and the answer. */
  readonly delayMs?: number;
  /** Never answer; the connection stays open until the receiver closes. */
  readonly hang?: boolean;
  /** Destroy the connection instead of answering. */
  readonly reset?: boolean;
  /** `Location` of a redirect. */
  readonly redirect?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** An answer, or a choice made for each POST; `nth` counts those of its kind (delivery or probe) from 1. */
export type AnswerRule =
  | ReceiverAnswer
  | ((post: ReceivedPost, nth: number) => ReceiverAnswer | Promise<ReceiverAnswer>);

/** A webhook endpoint for tests: records every POST, answers as told, refuses other methods with 405. */
export interface Receiver extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/hook` */
  readonly url: string;
  /** `127.0.0.1:PORT`, for `NETWORK_ALLOW`. */
  readonly host: string;
  readonly port: number;
  /** POSTs that are not probes, oldest first. */
  readonly deliveries: readonly ReceivedPost[];
  /** POSTs whose body is `{"monitor": true}`, oldest first. */
  readonly probes: readonly ReceivedPost[];
  /** Methods refused with 405. */
  readonly refused: readonly string[];
  /** Changes the answer to deliveries from now on. */
  answer(rule: AnswerRule): void;
  /** Changes the answer to probes from now on; 200 until then. */
  answerProbes(rule: AnswerRule): void;
  /** All deliveries of one `rid`, oldest first. */
  byRid(rid: string): ReceivedPost[];
  /** The different `rid`s delivered so far. */
  rids(): Set<string>;
  /** Deliveries beyond the first of their `rid`. */
  duplicates(): number;
  /** Resolves with the deliveries once `count` different `rid`s have arrived. Throws after `timeoutMs` (60 s). */
  until(count: number, timeoutMs?: number): Promise<readonly ReceivedPost[]>;
  /** The same for probes. */
  untilProbes(count: number, timeoutMs?: number): Promise<readonly ReceivedPost[]>;
}

/** Starts a {@link Receiver} on a free port of 127.0.0.1; `port` takes up a given one, as after a restart. */
export async function startReceiver(
  options: { readonly answer?: AnswerRule; readonly port?: number } = {},
): Promise<Receiver> {
  const deliveries: ReceivedPost[] = [];
  const probes: ReceivedPost[] = [];
  const refused: string[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let deliveryRule: AnswerRule = options.answer ?? {};
  let probeRule: AnswerRule = {};

  const server = createServer((request, response) => {
    if (request.method !== 'POST') {
      refused.push(request.method ?? '');
      response.writeHead(405, { allow: 'POST' }).end();
      return;
    }
    receive(request, response).catch((error: unknown) => {
      if (request.errored === null && !request.aborted) throw error;
    });
  });

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const post = postFrom(request, Buffer.concat(chunks));
    const isProbe = isProbeBody(post.json);
    const seen = isProbe ? probes : deliveries;
    seen.push(post);
    const rule = isProbe ? probeRule : deliveryRule;
    send(response, typeof rule === 'function' ? await rule(post, seen.length) : rule);
  }

  function send(response: ServerResponse, answer: ReceiverAnswer): void {
    if (answer.hang) return;
    if (answer.delayMs !== undefined && answer.delayMs > 0) {
      const { delayMs, ...rest } = answer;
      const timer = setTimeout(() => {
        timers.delete(timer);
        send(response, rest);
      }, delayMs);
      timers.add(timer);
      return;
    }
    if (answer.reset) {
      response.socket?.resetAndDestroy();
      return;
    }
    const location = answer.redirect === undefined ? {} : { location: answer.redirect };
    const status = answer.status ?? (answer.redirect === undefined ? 200 : 302);
    response.writeHead(status, { ...location, ...answer.headers }).end(answer.body);
  }

  const open = await listen(server, options.port);
  const { port } = open;

  const distinctRids = () => new Set(deliveries.map((post) => post.rid));
  return {
    url: `http://127.0.0.1:${port}/hook`,
    host: `127.0.0.1:${port}`,
    port,
    deliveries,
    probes,
    refused,
    answer: (rule) => {
      deliveryRule = rule;
    },
    answerProbes: (rule) => {
      probeRule = rule;
    },
    byRid: (rid) => deliveries.filter((post) => post.rid === rid),
    rids: distinctRids,
    duplicates: () => deliveries.length - distinctRids().size,
    until: (count, timeoutMs = 180_000) =>
      atLeast(deliveries, () => distinctRids().size, count, 'rids delivered', timeoutMs),
    untilProbes: (count, timeoutMs = 180_000) =>
      atLeast(probes, () => probes.length, count, 'probes', timeoutMs),
    [Symbol.asyncDispose]: async () => {
      for (const timer of timers) clearTimeout(timer);
      await open[Symbol.asyncDispose]();
    },
  };
}

function atLeast<T>(
  value: T,
  size: () => number,
  count: number,
  what: string,
  timeoutMs: number,
): Promise<T> {
  return eventually(
    () => {
      const seen = size();
      if (seen < count) throw new Error(`${seen} of ${count} ${what}`);
      return value;
    },
    { timeoutMs, what: `${count} ${what}` },
  );
}

function postFrom(request: IncomingMessage, rawBody: Buffer): ReceivedPost {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '');
  }
  const headerList: [string, string][] = [];
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    headerList.push([request.rawHeaders[at] ?? '', request.rawHeaders[at + 1] ?? '']);
  }
  const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(rawBody) : rawBody;
  const text = plain.toString('utf8');
  return {
    path: request.url ?? '',
    headers,
    headerList,
    rawBody,
    text,
    json: parsedOrUndefined(text),
    rid: headers['rid'] ?? '',
    at: new Date(),
    remotePort: request.socket.remotePort,
  };
}

function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Pages are seldom JSON; undefined says so.
    return undefined;
  }
}

function isProbeBody(json: unknown): boolean {
  return typeof json === 'object' && json !== null && 'monitor' in json && json.monitor === true;
}
