/** What a span tells; names follow OpenTelemetry's semantic conventions. Never tokens or queries. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

/** A piece of work as it begins. */
export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  /** The `traceparent` of the work that caused it; undefined begins a new trace. */
  readonly parent: string | undefined;
  readonly attributes?: SpanAttributes;
  /** Default: now. */
  readonly startedAt?: Date;
}

/** A piece of work in a trace. */
export interface Span {
  /**
   * What the work that it causes names as its parent (W3C Trace Context); undefined if it belongs
   * to no trace.
   */
  readonly traceparent: string | undefined;
  /**
   * Ends it. `error` is the reason of a failure, a word rather than a text. What is never ended is
   * never sent.
   */
  end(attributes?: SpanAttributes, error?: string): void;
  /** Gives it a name that was not known when it began. */
  rename(name: string): void;
}

/** Traces of work, from a call through the queue to the delivery, over all processes. */
export interface Tracing {
  start(span: SpanStart): Span;
  /** Draws whether a trace is kept that nobody who is known has asked for. */
  keepsUnasked(): boolean;
  /** Sends what has ended and is not sent yet; for some seconds at most. */
  close(): Promise<void>;
}

/** Traces nothing; the trace of a client passes through unchanged. */
export const noTracing: Tracing = {
  start: ({ parent }) => ({
    traceparent: parent,
    end: () => undefined,
    rename: () => undefined,
  }),
  keepsUnasked: () => false,
  close: () => Promise.resolve(),
};

/** How long a piece of work took, and the trace it belongs to. */
export interface TimedWork {
  readonly seconds: number;
  readonly traceparent: string | undefined;
}

const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}/;

/**
 * The trace context of a header; undefined when it is invalid. Parts of later versions are left
 * out.
 */
export function parseTraceparent(header: string | undefined): string | undefined {
  return TRACEPARENT.exec(header ?? '')?.[0];
}
