import type { HeaderPair } from './job.ts';
import type { CrawlRecord } from './result.ts';

/** One POST to the callback URL. */
export interface DeliveryAttempt {
  /** 1 for the first. */
  readonly attempt: number;
  readonly startedAt: Date;
  /** The callback URL's status, 0 when there was no answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Why it failed; empty when acknowledged. */
  readonly error: string;
  /** The beginning of what the callback URL answered, if it did not acknowledge. */
  readonly answer?: string | undefined;
}

/** What the answer to one POST shows of how much its endpoint can take. */
export type EndpointAnswer =
  | {
      readonly kind: 'acknowledged';
      /** From the last byte of the body to the answer. */
      readonly answerMs: number;
    }
  | {
      /** No answer in time, no connection, or a status of 429 or 503. */
      readonly kind: 'overloaded';
      /** What the endpoint asked for. */
      readonly retryAfterMs?: number;
    }
  | {
      /** Any other answer: an error that more or fewer posts would not change. */
      readonly kind: 'other';
    }
  | {
      /** Nothing was sent: this process had no socket. It says nothing about the endpoint. */
      readonly kind: 'no_socket';
    };

/** A result that is being delivered to the callback URL. */
export interface Delivery extends CrawlRecord {
  readonly crawlerId: string;
  /** The body before compression, where it is at hand. Signing a compressed delivery frees its memory. */
  readonly plain?: Uint8Array;
  /** The push's `callback_headers`. */
  readonly callbackHeaders: readonly HeaderPair[];
  /**
   * Attempts begun, this one included. Later writes name it as they name `QueuedJob.attempt`.
   */
  readonly attempt: number;
  /** Whether an attempt has ended before. One that a dead process had begun does not count. */
  readonly wasAttempted?: boolean;
  readonly createdAt: Date;
  /** The trace that it belongs to; the callback URL gets it as a header. */
  readonly traceparent?: string | undefined;
}

/** The state of a result's delivery, without its page. */
export interface DeliverySummary {
  readonly rid: string;
  readonly url: string;
  readonly pushedUrl: string;
  readonly cbStatus: number;
  readonly originalStatus: number;
  /** Why the crawl failed; absent when it ended well. */
  readonly failure: string | undefined;
  /** What the client keeps with it. */
  readonly metadata: string | undefined;
  /** The failed crawl that it repeats. */
  readonly againOf: string | undefined;
  /** The name of its batch. */
  readonly batch: string | undefined;
  /** The event that is delivered in place of a result. */
  readonly event: string | undefined;
  /** Bytes of the page as it is kept. */
  readonly size: number;
  readonly state: 'pending' | 'delivered' | 'failed';
  readonly createdAt: Date;
  /** Set while pending. */
  readonly nextAttemptAt: Date | undefined;
  /** Oldest first, the last 100. */
  readonly attempts: readonly DeliveryAttempt[];
}

/** Why the last attempt failed, as a word: errors are `code: text`, and the text may differ each time. */
export function deliveryReason({ attempts }: Pick<DeliverySummary, 'attempts'>): string {
  return (attempts.at(-1)?.error ?? '').replace(/[:,].*$/s, '');
}
