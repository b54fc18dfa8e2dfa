import type { Call } from '../api/method.ts';
import { createTransfer, type Transfer } from '../api/transfer.ts';
import { parseBearer } from '../domain/header-rules.ts';
import { type AnyRequest, type AnyResponse, isGone } from '../http/node-http.ts';
import { hasBody } from '../http/receive-body.ts';
import type { RoomPools } from '../http/room.ts';
import { parseQuery } from './query-string.ts';
import { readRequestBody } from './request-body.ts';

/** One request in the gateway. */
export interface Exchange {
  /** As sent: `GET`, `HEAD`, ... */
  readonly method: string;
  /** The query as sent, without its `?`. */
  readonly query: string;
  /** Names and values of the query in turn, decoded. */
  readonly parameters: readonly string[];
  /** The call as handlers see it. */
  readonly call: Call;
  /** The value of a request header, undefined when absent. `name` in lower case. */
  header(name: string): string | undefined;
  /** The last value of a query parameter, undefined when absent. */
  parameter(name: string): string | undefined;
  /** Whether the request may have a body. */
  readonly hasBody: boolean;
  /**
   * Reads the request's body, once and at most as long as the route allows. Throws as {@link
   * readRequestBody} does.
   */
  body(): Promise<Uint8Array>;
  /** Sets the longest body of the route, and its most fields; called before the body is read. */
  limitBody(maxBytes: number, maxFields: number): void;
  /** Most fields of a JSON body. */
  readonly maxFields: number;
}

/** Makes the {@link Exchange} of a request. */
export function createExchange(
  request: AnyRequest,
  response: AnyResponse,
  query: string,
  pools: RoomPools,
): Exchange {
  const parameters = parseQuery(query);
  let bytes: Promise<Uint8Array> | undefined;
  let maxBytes = 0;
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };
  const transfer = createTransfer(request, response, pools, () => call.caller);
  const call: Call = new RestCall(response, transfer, header);

  const exchange = {
    method: request.method ?? 'GET',
    query,
    parameters,
    call,
    header,
    hasBody: hasBody(request),
    maxFields: 0,
    parameter(name: string): string | undefined {
      for (let at = parameters.length - 2; at >= 0; at -= 2) {
        if (parameters[at] === name) return parameters[at + 1];
      }
      return undefined;
    },
    limitBody(bytesLimit: number, fieldsLimit: number): void {
      maxBytes = bytesLimit;
      exchange.maxFields = fieldsLimit;
    },
    body: () => (bytes ??= readRequestBody(request, maxBytes, transfer.room)),
  };
  return exchange;
}

class RestCall implements Call {
  readonly protocol = 'rest';
  readonly bearer: string | undefined;
  readonly remote: string;
  declare readonly requestId?: string;
  declare readonly traceparent?: string;
  readonly #response: AnyResponse;
  readonly #transfer: Transfer;
  #signal: AbortSignal | undefined;

  constructor(
    response: AnyResponse,
    transfer: Transfer,
    header: (name: string) => string | undefined,
  ) {
    this.bearer = parseBearer(header('authorization'));
    this.remote = transfer.remote;
    this.#response = response;
    this.#transfer = transfer;
    const requestId = header('x-request-id');
    if (requestId !== undefined) this.requestId = requestId;
    const traceparent = header('traceparent');
    if (traceparent !== undefined) this.traceparent = traceparent;
  }

  /** Made on first use: most calls need none, and it costs about a microsecond. */
  get signal(): AbortSignal {
    return (this.#signal ??= disconnectSignal(this.#response));
  }

  get room(): Call['room'] {
    return this.#transfer.room;
  }

  get received(): Call['received'] {
    return this.#transfer.received;
  }
}

function disconnectSignal(response: AnyResponse): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (!response.writableEnded) controller.abort();
  };
  if (isGone(response)) stop();
  else response.once('close', stop);
  return controller.signal;
}
