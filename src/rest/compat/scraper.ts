import { create } from '@bufbuild/protobuf';
import {
  CrawlParametersSchema,
  Format,
} from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { CrawlRequestSchema, PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { dataEnvelope, resultFields } from '../../domain/result-fields.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { AdapterFactory } from '../adapter.ts';
import { GatewayError } from '../gateway-error.ts';
import { envelopeReply, jsonReply } from '../reply.ts';
import { assertUrlIsEncoded } from './encoded-url.ts';
import { REMAINING_REQUESTS, toHeaders } from './page.ts';

/** `/scraper` and `/leads`: the paths under which public clients expect structured data. */
export const scraper: AdapterFactory = (toolkit) => {
  const { crawl } = PushService.method;
  const bind = toolkit.binder(crawl);
  const call = toolkit.caller(crawl);

  return [
    {
      path: '/scraper',
      methods: ['GET'],
      getChanges: true,
      async handle(exchange) {
        assertUrlIsEncoded(exchange);
        const request = await bind(exchange);
        const parameters = (request.parameters ??= create(CrawlParametersSchema));
        parameters.format = Format.HTML;
        if ((parameters.scraper ?? '') === '') parameters.autoparse = true;
        const response = await call(request, exchange);
        const fields = resultFields(response, response, { remaining_requests: REMAINING_REQUESTS });
        const { body } = response;
        return envelopeReply(dataEnvelope(fields, body), body, toHeaders(fields));
      },
    },
    {
      path: '/leads',
      methods: ['GET'],
      getChanges: true,
      async handle(exchange) {
        const { token } = await bind(exchange);
        const domain = exchange.parameter('domain')?.trim() ?? '';
        if (!/^[^\s/?#@\\]+$/.test(domain) || URL.parse(`https://${domain}/`) === null) {
          throw new GatewayError(422, 'invalid_domain', 'domain must be a host name.', {
            field: 'domain',
          });
        }
        const parameters = create(CrawlParametersSchema, { scraper: 'email-extractor' });
        const visit = (scheme: string) =>
          call(
            create(CrawlRequestSchema, { token, url: `${scheme}://${domain}/`, parameters }),
            exchange,
          );
        const secure = await visit('https');
        const page = secure.cbStatus === CB_STATUS.success ? secure : await visit('http');
        const success = page.cbStatus === CB_STATUS.success;
        const emails = success ? parseEmails(page.body) : [];
        const leads = emails.map((email) => ({ email, sources: [page.url] }));
        const reply = { success, remaining_requests: REMAINING_REQUESTS, domain, leads };
        return jsonReply(JSON.stringify(reply));
      },
    },
  ];
};

function parseEmails(data: Uint8Array): string[] {
  try {
    const { emails = [] } = JSON.parse(Buffer.from(data).toString()) as { emails?: string[] };
    return emails;
  } catch {
    // The target's reply was no HTML page, so there is nothing to extract.
    return [];
  }
}
