import type { Crawler } from '../../domain/crawler.ts';
import type { Delivery, DeliveryAttempt } from '../../domain/delivery.ts';
import { noTracing, type Tracing } from '../../domain/tracing.ts';
import type { Webhook } from '../../webhook/webhook.ts';

/**
 * Traces each POST as an HTTP request, whose trace the callback URL gets as a header. That of several
 * results is a part of the first one's trace.
 */
export function tracedWebhook(
  webhook: Pick<Webhook, 'deliver' | 'deliverTogether'>,
  tracing: Tracing,
): Pick<Webhook, 'deliver' | 'deliverTogether'> {
  if (tracing === noTracing) return webhook;

  async function traced<Sent>(
    crawler: Crawler,
    { traceparent: parent, rid, attempt }: Delivery,
    count: number,
    send: (traceparent: string | undefined) => Promise<Sent>,
    logOf: (sent: Sent) => DeliveryAttempt | undefined,
  ): Promise<Sent> {
    const span = tracing.start({
      name: 'POST',
      kind: 'client',
      parent,
      attributes: {
        'http.request.method': 'POST',
        'server.address': URL.parse(crawler.callbackUrl ?? '')?.hostname ?? '',
        'messaging.message.id': rid,
        'http.request.resend_count': attempt - 1,
        ...(count === 1 ? {} : { 'messaging.batch.message_count': count }),
      },
    });
    try {
      const sent = await send(span.traceparent);
      const { status = 0, error = '' } = logOf(sent) ?? {};
      span.end(
        status === 0 ? {} : { 'http.response.status_code': status },
        error === '' ? undefined : error.replace(/:.*$/s, ''),
      );
      return sent;
    } catch (error) {
      span.end({}, 'aborted');
      throw error;
    }
  }

  return {
    deliver: (crawler, delivery, signal) =>
      traced(
        crawler,
        delivery,
        1,
        (traceparent) => webhook.deliver(crawler, { ...delivery, traceparent }, signal),
        ({ log }) => log,
      ),
    deliverTogether(crawler, deliveries, signal) {
      const [first, ...others] = deliveries as readonly [Delivery, ...Delivery[]];
      return traced(
        crawler,
        first,
        deliveries.length,
        (traceparent) =>
          webhook.deliverTogether(crawler, [{ ...first, traceparent }, ...others], signal),
        ({ results }) => results.at(-1)?.log,
      );
    },
  };
}
