import { createServer } from 'node:http';
import { listen } from './listen.ts';

/** A span as it was sent. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace that no client began. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** `service.instance.id` of the process that sent it. */
  readonly instance: string;
}

/** A receiver of traces: OTLP over HTTP, as JSON. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** The headers of the last request. */
  readonly headers: Readonly<Record<string, unknown>>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

interface SentSpan extends Pick<ReceivedSpan, 'traceId' | 'spanId' | 'name' | 'kind'> {
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}

/** Starts a receiver on a free port. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let headers = {};
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      headers = request.headers;
      if (request.url !== '/v1/traces') {
        response.writeHead(404).end();
        return;
      }
      spans.push(...toSpans(JSON.parse(Buffer.concat(chunks).toString()) as Export));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  const open = await listen(server);
  return {
    url: `http://127.0.0.1:${open.port}`,
    spans,
    get headers() {
      return headers;
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}

function toSpans({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const instance = String(toRecord(resource.attributes)['service.instance.id']);
    return scopeSpans.flatMap((scope) =>
      scope.spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        name: span.name,
        kind: span.kind,
        startedMs: Number(span.startTimeUnixNano) / 1e6,
        endedMs: Number(span.endTimeUnixNano) / 1e6,
        attributes: toRecord(span.attributes),
        instance,
      })),
    );
  });
}

function toRecord(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
