import {
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Logger } from '../domain/logger.ts';
import type { Span, SpanStart, Tracing } from '../domain/tracing.ts';

/** Where traces go, and how many. */
export interface TracingSettings {
  /** Base URL of an OTLP receiver (HTTP, JSON). */
  readonly endpoint: string;
  /** Headers of the requests to it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly version: string;
  /** Names this process among those of the service. */
  readonly instance: string;
  /** The part of the traces that begin here which is kept, from 0 to 1. */
  readonly ratio: number;
}

const EXPORT_TIMEOUT_MS = 5_000;
/** Spans that wait to be sent; further ones are dropped. */
const MAX_WAITING = 8_192;
const WARN_EVERY_MS = 60_000;

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
} as const;

/** Opens the traces. A receiver that fails costs its spans, and one warning a minute. */
export async function openTracing(settings: TracingSettings, logger: Logger): Promise<Tracing> {
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  const { resourceFromAttributes } = await import('@opentelemetry/resources');
  const sdk = await import('@opentelemetry/sdk-trace');
  const exporter = new OTLPTraceExporter({
    url: `${settings.endpoint.replace(/\/$/, '')}/v1/traces`,
    headers: { ...settings.headers },
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  let warnedAt = Number.NEGATIVE_INFINITY;
  const reporting: typeof exporter.export = (spans, done) =>
    exporter.export(spans, (result) => {
      if (result.error !== undefined && performance.now() - warnedAt > WARN_EVERY_MS) {
        warnedAt = performance.now();
        const { name, code } = result.error as NodeJS.ErrnoException;
        // Of an exporter's error it is the HTTP status.
        const reason = code ?? name;
        logger.warn({ reason, spans: spans.length }, 'traces could not be sent');
      }
      done(result);
    });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': settings.serviceName,
      'service.version': settings.version,
      'service.instance.id': settings.instance,
    }),
    sampler: new sdk.ParentBasedSampler({
      root: new sdk.TraceIdRatioBasedSampler(settings.ratio),
    }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: {
          export: reporting,
          shutdown: () => exporter.shutdown(),
          forceFlush: () => exporter.forceFlush(),
        },
        maxQueueSize: MAX_WAITING,
        scheduledDelayMillis: 1_000,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer('queued-crawler', settings.version);
  return {
    start: (span) => startSpan(tracer, span),
    keepsUnasked: () => Math.random() < settings.ratio,
    // Spans that cannot be sent have been reported; they must not keep the service from stopping.
    close: () => provider.shutdown().catch(() => undefined),
  };
}

function startSpan(tracer: Tracer, { name, kind, parent, attributes, startedAt }: SpanStart): Span {
  const options = {
    kind: kinds[kind],
    ...(attributes === undefined ? {} : { attributes }),
    ...(startedAt === undefined ? {} : { startTime: startedAt }),
  };
  const span = tracer.startSpan(name, options, contextOf(parent));
  return {
    traceparent: traceparentOf(span),
    rename: (better) => void span.updateName(better),
    end(more, error) {
      if (more !== undefined) span.setAttributes(more);
      if (error !== undefined) {
        span.setAttribute('error.type', error);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

function contextOf(parent: string | undefined) {
  if (parent === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = '00'] = parent.split('-');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  });
}

function traceparentOf(span: SdkSpan): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
