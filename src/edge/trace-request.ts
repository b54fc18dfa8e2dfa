import { parseTraceparent, type Tracing } from '../domain/tracing.ts';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';

/** Paths that monitoring asks for again and again. */
const UNTRACED = /^\/(?:healthz|readyz|metrics)(?:\?|$)/;

/**
 * Traces a request until its reply has ended, as a part of the client's trace if it names one.
 * Later readers of the header `traceparent` find this request there.
 */
export function traceRequest(tracing: Tracing, request: AnyRequest, response: AnyResponse): void {
  const { headers, method = '', url = '/' } = request;
  const given = headers['traceparent'];
  const parent = parseTraceparent(typeof given === 'string' ? given : undefined);
  delete headers['traceparent'];
  if (UNTRACED.test(url)) return;
  const span = tracing.start({
    name: method,
    kind: 'server',
    parent,
    attributes: { 'http.request.method': method },
  });
  if (span.traceparent !== undefined) headers['traceparent'] = span.traceparent;
  const note = requestNote(request);
  response.once('close', () => {
    const { route, protocol, call } = note;
    const status = response.statusCode;
    // A client decides for its trace; a stranger could have all of its requests traced.
    const isKnown = call?.caller !== undefined || call?.isOperator === true;
    if (parent !== undefined && !isKnown && !tracing.keepsUnasked()) return;
    const account = call?.caller?.owner.account.name;
    const isRpc = protocol !== 'rest' && protocol !== 'http';
    if (route !== '') span.rename(route);
    span.end(
      {
        'http.response.status_code': status,
        ...(isRpc
          ? { 'rpc.system.name': protocol, 'rpc.method': route }
          : { 'http.route': route.slice(route.indexOf(' ') + 1) }),
        ...(account === undefined ? {} : { 'queued_crawler.account': account }),
      },
      // A refusal is the client's fault, not an error of the server.
      status >= 500 || (call?.failure === 'internal' && isRpc) ? call?.failure : undefined,
    );
  });
}
