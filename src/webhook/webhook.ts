import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, DeliveryAttempt, EndpointAnswer } from '../domain/delivery.ts';

/** What one POST came to. */
export interface DeliveryResult {
  readonly acknowledged: boolean;
  readonly log: DeliveryAttempt;
  /** What it says of how much the endpoint can take. */
  readonly answer: EndpointAnswer;
}

/** The way to a client's callback URL. */
export interface Webhook {
  /**
   * One POST of a result to the crawler's callback URL: headers, signature and body of the spec. Acknowledged by 200, 201
   * or 204 in time. Never throws for what the endpoint does; rejects with the signal's reason when aborted.
   */
  deliver(crawler: Crawler, delivery: Delivery, signal: AbortSignal): Promise<DeliveryResult>;
  /** The monitoring probe; healthy on any 2xx. */
  probe(crawler: Crawler, signal: AbortSignal): Promise<{ healthy: boolean; error: string }>;
}
