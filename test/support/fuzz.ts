import { type ClientHttp2Session, connect } from 'node:http2';
import { type FuzzCall, nextCall } from './fuzz-calls.ts';
import { createNoise } from './noise.ts';
import { ADMIN, JAVASCRIPT, NORMAL } from './tokens.ts';

/** What came of a run. */
export interface FuzzReport {
  /** Answers by protocol and status, for example `grpc 3`. */
  readonly answers: ReadonlyMap<string, number>;
  /** Calls that the service takes the blame for, or never answered. */
  readonly faults: readonly { readonly call: FuzzCall; readonly answer: string }[];
}

/** The settings of a service to be fuzzed: it answers, and goes nowhere. */
export const FUZZED = {
  ROLE: 'api',
  NORMAL_TOKEN: NORMAL,
  JAVASCRIPT_TOKEN: JAVASCRIPT,
  ADMIN_TOKEN: ADMIN,
  NETWORK_ALLOW: '',
  NETWORK_DENY: '0.0.0.0/0,::/0',
  INLINE_CONCURRENCY: '1',
  PUSH_RATE_PER_SECOND: '0',
  ACCOUNT_REQUESTS_PER_SECOND: '0',
} as const;

/** A call that is not answered by then hangs, on a busy machine, too. */
const PATIENCE_MS = 120_000;
// Pushes that arrive together share one write to disk.
const PARALLEL = 96;
/** Calls after which a session is replaced, as connections of clients are. */
const CALLS_PER_SESSION = 2_000;

/**
 * Sends the given number of calls to a service over HTTP/2 and collects what is wrong with the
 * answers.
 */
export async function runFuzz(
  serviceUrl: string,
  calls: number,
  seed: number,
): Promise<FuzzReport> {
  const noise = createNoise(seed);
  const answers = new Map<string, number>();
  const faults: { call: FuzzCall; answer: string }[] = [];
  const sessions: ClientHttp2Session[] = [];
  let session: ClientHttp2Session | undefined;
  let left = calls;
  let ofSession = 0;

  function currentSession(): ClientHttp2Session {
    if (
      session === undefined ||
      session.closed ||
      session.destroyed ||
      ofSession >= CALLS_PER_SESSION
    ) {
      session = connect(serviceUrl);
      sessions.push(session);
      session.on('error', () => undefined);
      ofSession = 0;
    }
    ofSession += 1;
    return session;
  }

  async function worker(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const call = nextCall(noise);
      const answer = await send(currentSession(), call);
      const key = `${call.protocol} ${answer}`;
      answers.set(key, (answers.get(key) ?? 0) + 1);
      if (isFault(answer)) faults.push({ call, answer });
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  for (const each of sessions) each.close();
  return { answers, faults };
}

/** An HTTP status, `code N` of gRPC, or what else happened. */
function send(session: ClientHttp2Session, call: FuzzCall): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request(
      { ...call.headers, ':method': call.method, ':path': call.path },
      { endStream: call.body.byteLength === 0 },
    );
    let answer = 'no answer';
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      answer = 'no answer in time';
      stream.destroy();
    }, PATIENCE_MS);
    stream.on('response', (headers) => {
      answer = String(headers[':status']);
      if (headers['grpc-status'] !== undefined) answer = `code ${String(headers['grpc-status'])}`;
    });
    stream.on('trailers', (trailers) => {
      if (trailers['grpc-status'] !== undefined) answer = `code ${String(trailers['grpc-status'])}`;
    });
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      // It never ends by itself.
      if (/\/watch\/|WatchService/i.test(call.path)) stream.close();
    });
    stream.on('error', (error: Error) => {
      if (answer === 'no answer') answer = `no answer: ${error.message}`;
    });
    stream.on('close', () => {
      clearTimeout(timer);
      const trailer = /grpc-status: ?(\d+)/.exec(Buffer.concat(chunks).toString('latin1'))?.[1];
      resolve(call.protocol === 'grpc-web' && trailer !== undefined ? `code ${trailer}` : answer);
    });
    if (call.body.byteLength > 0) stream.end(call.body);
  });
}

/** UNIMPLEMENTED (501) is what gRPC answers a compression or a number of messages with that it does not know. */
function isFault(answer: string): boolean {
  if (answer.startsWith('no answer')) return true;
  const code = /^code (\d+)$/.exec(answer)?.[1];
  if (code !== undefined) return ['2', '4', '13', '14', '15'].includes(code);
  return Number(answer) >= 500 && answer !== '501';
}
