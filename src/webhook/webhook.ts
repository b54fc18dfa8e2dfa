import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, DeliveryAttempt, EndpointAnswer } from '../domain/delivery.ts';
import type { HeaderPair } from '../domain/job.ts';

/** A delivery without its page. */
export type SentDelivery = Omit<
  Delivery,
  'body' | 'plain' | 'coding' | 'attempt' | 'createdAt' | 'crawlerId'
>;

/** The result of one POST. */
export interface DeliveryResult {
  readonly acknowledged: boolean;
  readonly log: DeliveryAttempt;
  /** What it shows of how much the endpoint can take. */
  readonly answer: EndpointAnswer;
}

/** What became of deliveries that were to be sent together. */
export interface DeliveredTogether {
  /** Those of the first deliveries, in their order; the others were not sent. */
  readonly results: readonly DeliveryResult[];
  /** Whether they were too long for one POST: so says the endpoint, by 413, or their bytes do. */
  readonly isTooLong: boolean;
}

/** Sends results and probes to clients' callback URLs. */
export interface Webhook {
  /**
   * POSTs a result to the crawler's callback URL once. 200, 201 or 204 in time acknowledges it.
   * Without a socket it waits for one, as long as a POST may take.
   * Never throws for what the endpoint does; rejects with the signal's reason when aborted.
   */
  deliver(crawler: Crawler, delivery: Delivery, signal: AbortSignal): Promise<DeliveryResult>;
  /**
   * POSTs several results at once, as NDJSON. One answer acknowledges all of them or none. If they are
   * too long, each half is sent by itself, for a limited time. Rejects as `deliver` does,
   * unless a part was sent.
   */
  deliverTogether(
    crawler: Crawler,
    deliveries: readonly Delivery[],
    signal: AbortSignal,
  ): Promise<DeliveredTogether>;
  /**
   * The headers of a delivery that is sent by itself, for people: secret values and the signature are
   * replaced. Empty without a callback URL.
   */
  shownHeaders(crawler: Crawler, delivery: SentDelivery, sentAt: Date): readonly HeaderPair[];
  /**
   * Sends the monitoring probe; healthy on any 2xx, undefined if this process had no socket.
   */
  probe(
    crawler: Crawler,
    signal: AbortSignal,
  ): Promise<{ readonly healthy: boolean | undefined; readonly error: string }>;
}
