import type { Logger } from '../domain/logger.ts';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { type RequestNote, requestNote } from '../http/request-note.ts';

/** Which requests are logged: every one, those that failed, or none. */
export type LoggedRequests = 'all' | 'failed' | 'off';

/** A request id that is taken over from the client: it goes into headers, replies and the log. */
const REQUEST_ID = /^[\w.:/+=~-]{1,128}$/;

/** Routes that monitoring asks for again and again; they are logged at level debug. */
const OPERATIONAL: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Gives the request its id: the client's `x-request-id` where it has a usable one, else a new one.
 * Later readers of that header find it there, and the reply carries it.
 */
export function identifyRequest(request: AnyRequest, response: AnyResponse): string {
  const given = request.headers['x-request-id'];
  const requestId =
    typeof given === 'string' && REQUEST_ID.test(given) ? given : crypto.randomUUID();
  request.headers['x-request-id'] = requestId;
  response.setHeader('x-request-id', requestId);
  return requestId;
}

/** Logs one line when the reply has ended, or the client has disconnected. */
export function logRequest(
  { logger, logged }: { readonly logger: Logger; readonly logged: LoggedRequests },
  request: AnyRequest,
  response: AnyResponse,
  requestId: string,
): void {
  if (logged === 'off' || logger.isLevelEnabled?.('info') === false) return;
  const startedAt = performance.now();
  const note = requestNote(request);
  const method = request.method ?? '';
  response.once('close', () => {
    const { protocol, call } = note;
    const code = call?.failure;
    const status = response.statusCode;
    const cut = !isComplete(response);
    if (logged === 'failed' && code === undefined && status < 400 && !cut) return;
    const account = call?.caller?.owner.account.name;
    const fields = {
      requestId,
      protocol,
      method,
      route: routeOf(note),
      status,
      ...(code === undefined ? {} : { code }),
      ...(cut ? { cut } : {}),
      ...(account === undefined ? {} : { account }),
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
    };
    if (OPERATIONAL.has(note.route)) logger.debug(fields, 'request');
    else logger.info(fields, 'request');
  });
}

function routeOf({ route }: RequestNote): string {
  return route === '' ? 'no route' : route;
}

/** Whether the reply was written to its end. */
function isComplete(response: AnyResponse): boolean {
  return 'stream' in response ? response.writableEnded : response.writableFinished;
}
