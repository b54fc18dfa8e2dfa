import { createTransfer } from '../api/transfer.ts';
import { createClientOver } from '../client/client-over.ts';
import type { Config } from '../config/config.ts';
import { VERSION } from '../config/version.ts';
import { parseBearer } from '../domain/header-rules.ts';
import type { Logger } from '../domain/logger.ts';
import { type AnyRequest, type AnyResponse, isGone } from '../http/node-http.ts';
import { BodyFault, declaredLength, receiveBody } from '../http/receive-body.ts';
import { requestNote } from '../http/request-note.ts';
import type { RoomPools } from '../http/room.ts';
import { GatewayError } from '../rest/gateway-error.ts';
import { jsonReply, type Reply } from '../rest/reply.ts';
import type { ConnectMount } from '../rpc/connect-mount.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import { createStreamPlaces } from '../service/stream-places.ts';
import { failedReply } from './failed-reply.ts';

/** Longest request: a hundred URLs of 8 KiB. */
const MAX_BYTES = 1024 * 1024;
/** The decoded message, and what its tool makes of it. */
const COPIES = 4;
const LIMITS = { what: 'requests of agents', perAccount: 20, all: 500 } as const;

/** The collaborators of the endpoint. */
export interface McpEndpointDeps {
  readonly mcp: Config['mcp'];
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly rpc: Pick<ConnectMount, 'transport'>;
  readonly pools: RoomPools;
  readonly logger: Logger;
}

/** Answers a request of `/mcp`. */
export type McpEndpoint = (request: AnyRequest, response: AnyResponse) => Promise<Reply>;

/**
 * Makes `/mcp`, the Model Context Protocol over HTTP; undefined where it is off. Its tools call the
 * API with the token of the request, so all limits of the account apply.
 */
export function createMcpEndpoint(deps: McpEndpointDeps): McpEndpoint | undefined {
  const { mcp, authenticator, rpc, pools, logger } = deps;
  if (mcp === 'off') return undefined;
  const enter = createStreamPlaces(LIMITS);

  async function answer(request: AnyRequest, response: AnyResponse): Promise<Reply> {
    const token = parseBearer(request.headers.authorization);
    const { remote } = requestNote(request);
    const owner = await authenticator.authenticate(token, remote);
    assertPost(request);
    const place = enter(owner.account.accountId);
    const leave = (): void => place[Symbol.dispose]();
    // A client that has disconnected while its token was looked up closes nothing any more.
    if (isGone(response)) leave();
    else response.once('close', leave);
    const caller = { token: token ?? '', owner };
    const { room } = createTransfer(request, response, pools, () => caller);
    const grant = await room.take(
      Math.min(declaredLength(request) ?? MAX_BYTES, MAX_BYTES) * COPIES,
    );
    const body = await receiveBody(request, MAX_BYTES);
    grant.shrink(body.byteLength * COPIES);
    await room.readTurn(body.byteLength);
    // Each of up to 100 calls in a request releases its memory when the reply is closed.
    response.setMaxListeners(0);
    const client = createClientOver(
      rpc.transport(request, response, caller.token),
      () => undefined,
    );
    // The protocol's library is loaded for the first agent.
    const { answerHttp } = await import('../mcp/answer-http.ts');
    const allowPush = mcp === 'push';
    const options = { client, version: VERSION, allowPush };
    return toReply(await answerHttp(toWebRequest(request, response, body), options));
  }

  return async (request, response) => {
    try {
      return await answer(request, response);
    } catch (error) {
      if (error instanceof BodyFault) return refusedBody(error, request);
      return failedReply(error, request, { logger, route: '/mcp' });
    }
  };
}

/** A `Request` cannot have every method, nor a body with GET. Nothing is streamed by GET or ended by DELETE here. */
function assertPost({ method }: AnyRequest): void {
  if (method === 'POST') return;
  throw new GatewayError(405, 'method_not_allowed', 'This path answers POST only.', {
    headers: { allow: 'POST' },
  });
}

function toWebRequest(request: AnyRequest, response: AnyResponse, body: Uint8Array): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith(':') && value !== undefined) headers.set(name, String(value));
  }
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const content = body.byteLength === 0 ? {} : { body: Uint8Array.from(body) };
  const { signal } = gone;
  return new Request('http://localhost/mcp', { method: 'POST', headers, signal, ...content });
}

async function toReply(answer: Response): Promise<Reply> {
  const headers = Object.fromEntries(answer.headers);
  const isStream = (headers['content-type'] ?? '').startsWith('text/event-stream');
  const body = isStream && answer.body !== null ? answer.body : await answer.text();
  return { status: answer.status, headers, body };
}

function refusedBody({ kind }: BodyFault, request: AnyRequest): Reply {
  const status = { too_large: 413, incomplete: 400, too_slow: 408 }[kind];
  const error = `The request could not be read: ${kind.replace('_', ' ')}.`;
  const code = `message_${kind}`;
  requestNote(request).call = { failure: code };
  return jsonReply(JSON.stringify({ error, code }), status);
}
