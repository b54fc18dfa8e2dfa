import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { parseTarget } from '../http/request-target.ts';
import { toRefusalReply } from '../rest/error-reply.ts';
import { GatewayError } from '../rest/gateway-error.ts';
import { type Reply, sendReply } from '../rest/reply.ts';
import { answerCors } from './cors.ts';

/** Answers requests of some paths. Never throws. */
export type RequestHandler = (request: AnyRequest, response: AnyResponse) => void;

/** The handlers of the routes. */
export interface RoutesDeps {
  /** Connect, gRPC and gRPC-Web. */
  readonly rpc: { handles(path: string): boolean; readonly handle: RequestHandler };
  /** Everything else. */
  readonly rest: { readonly handle: RequestHandler };
  /** The console's paths; without it REST answers them. */
  readonly console?: {
    handles(request: AnyRequest, path: string): boolean;
    answer(request: AnyRequest, path: string): Promise<Reply>;
  };
  /** `/readyz`: whether the service can answer calls now. */
  readonly isReady: () => boolean | Promise<boolean>;
  /** `/metrics`; without it REST answers that path. */
  readonly metrics?: (request: AnyRequest) => Promise<Reply>;
  /** `/log-level` and below it; without it REST answers those paths. */
  readonly logLevel?: (request: AnyRequest) => Promise<Reply> | Reply;
  /** `/backup` and below it; without it REST answers those paths. */
  readonly backup?: (request: AnyRequest) => Promise<Reply>;
  /** `/mcp`; without it REST answers that path. */
  readonly mcp?: (request: AnyRequest, response: AnyResponse) => Promise<Reply>;
  /** What `/healthz` shows of the program; default nothing. */
  readonly version?: string;
  /** Called when `isReady`, `metrics`, `mcp` or `console` throws; the client gets 503. */
  readonly onFailure: (error: unknown, route: string) => void;
}

const OPERATIONAL = /^\/(?:metrics|readyz|healthz|log-level(?:\/\w*)?|backup(?:\/[\w.-]*)?)$/;

/** Passes each request to its handler. `/healthz` says that the process is alive. */
export function createRoutes(deps: RoutesDeps): RequestHandler {
  const answerWith = async (
    request: AnyRequest,
    response: AnyResponse,
    make: () => Promise<Reply> | Reply,
    route: string,
  ): Promise<void> => {
    requestNote(request).route = route;
    let reply: Reply;
    try {
      reply = await make();
    } catch (error) {
      deps.onFailure(error, route);
      reply = textReply(503, 'unavailable\n');
    }
    await sendReply(request, response, reply);
  };
  const readiness = async () =>
    (await deps.isReady()) ? textReply(200, 'ready\n') : textReply(503, 'not ready\n');

  return (request, response) => {
    const { path } = parseTarget(request.url ?? '/');
    const { console: site } = deps;
    // The console calls its own origin, so nothing is said to others.
    if (site?.handles(request, path)) {
      void answerWith(request, response, () => site.answer(request, path), '/console');
      return;
    }
    // Operational paths are not for pages in a browser.
    if (!OPERATIONAL.test(path) && answerCors(request, response)) return;
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const { metrics, logLevel, backup, mcp } = deps;
    if (deps.rpc.handles(path)) deps.rpc.handle(request, response);
    else if (isRead && path === '/healthz') {
      void answerWith(
        request,
        response,
        () => textReply(200, `ok${deps.version === undefined ? '' : ` ${deps.version}`}\n`),
        path,
      );
    } else if (isRead && path === '/readyz') void answerWith(request, response, readiness, path);
    else if (isRead && path === '/metrics' && metrics !== undefined) {
      void answerWith(request, response, () => metrics(request), path);
    } else if (path === '/healthz' || path === '/readyz' || (path === '/metrics' && metrics)) {
      void answerWith(request, response, () => refuseMethod(request), path);
    } else if (mcp !== undefined && path === '/mcp') {
      void answerWith(request, response, () => mcp(request, response), path);
    } else if (logLevel !== undefined && path.startsWith('/log-level') && OPERATIONAL.test(path)) {
      void answerWith(request, response, () => logLevel(request), '/log-level');
    } else if (backup !== undefined && path.startsWith('/backup') && OPERATIONAL.test(path)) {
      void answerWith(request, response, () => backup(request), '/backup');
    } else deps.rest.handle(request, response);
  };
}

/** The reply to a request that does not read a path that can only be read. */
function refuseMethod({ headers }: AnyRequest): Reply {
  const allow = 'GET, HEAD';
  const refusal = new GatewayError(405, 'method_not_allowed', `This path answers ${allow} only.`, {
    headers: { allow },
  });
  return toRefusalReply(refusal, String(headers['x-request-id']));
}

function textReply(status: number, body: string): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
}
