import type { Crawler } from '../domain/crawler.ts';
import type { Delivery, DeliveryAttempt, EndpointAnswer } from '../domain/delivery.ts';

/** The result of one POST. */
export interface DeliveryResult {
  readonly acknowledged: boolean;
  readonly log: DeliveryAttempt;
  /** What it shows of how much the endpoint can take. */
  readonly answer: EndpointAnswer;
}

/** Sends results and probes to clients' callback URLs. */
export interface Webhook {
  /**
   * POSTs a result to the crawler's callback URL once. 200, 201 or 204 in time acknowledges it.
   * Never throws for what the endpoint does; rejects with the signal's reason when aborted.
   */
  deliver(crawler: Crawler, delivery: Delivery, signal: AbortSignal): Promise<DeliveryResult>;
  /** Sends the monitoring probe; healthy on any 2xx. */
  probe(crawler: Crawler, signal: AbortSignal): Promise<{ healthy: boolean; error: string }>;
}
