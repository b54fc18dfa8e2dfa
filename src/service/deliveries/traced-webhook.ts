import { noTracing, type Tracing } from '../../domain/tracing.ts';
import type { Webhook } from '../../webhook/webhook.ts';

/** Traces each delivery as an HTTP request, whose trace the callback URL gets as a header. */
export function tracedWebhook(
  webhook: Pick<Webhook, 'deliver'>,
  tracing: Tracing,
): Pick<Webhook, 'deliver'> {
  if (tracing === noTracing) return webhook;
  return {
    async deliver(crawler, delivery, signal) {
      const span = tracing.start({
        name: 'POST',
        kind: 'client',
        parent: delivery.traceparent,
        attributes: {
          'http.request.method': 'POST',
          'server.address': URL.parse(crawler.callbackUrl ?? '')?.hostname ?? '',
          'messaging.message.id': delivery.rid,
          'http.request.resend_count': delivery.attempt - 1,
        },
      });
      const { traceparent } = span;
      try {
        const result = await webhook.deliver(crawler, { ...delivery, traceparent }, signal);
        const { status, error } = result.log;
        span.end(
          status === 0 ? {} : { 'http.response.status_code': status },
          error === '' ? undefined : error.replace(/:.*$/s, ''),
        );
        return result;
      } catch (error) {
        span.end({}, 'aborted');
        throw error;
      }
    },
  };
}
