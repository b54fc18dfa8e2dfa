import { create } from '@bufbuild/protobuf';
import { CrawlParametersSchema } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { Clock } from '../../domain/clock.ts';
import { DomainError } from '../../domain/errors.ts';
import { resultFields } from '../../domain/result-fields.ts';
import type { AdapterFactory } from '../adapter.ts';
import type { Reply } from '../reply.ts';
import { REMAINING_REQUESTS, toHeaders } from './page.ts';

/** The stored screenshots. */
export interface ScreenshotSource {
  /** Undefined when the identifier is unknown or its screenshot has expired. */
  get(
    id: string,
    now: Date,
  ): Promise<{ readonly contentType: string; readonly bytes: Uint8Array } | undefined>;
}

/**
 * `/screenshots?id=`: a stored screenshot; identifiers cannot be guessed, and expire.
 * `/screenshots?url=`: crawls the page with the JavaScript token and replies with its screenshot,
 * as public clients expect of this path.
 */
export function screenshotAdapters(screenshots: ScreenshotSource, clock: Clock): AdapterFactory {
  return (toolkit) => {
    const { crawl } = PushService.method;
    const bind = toolkit.binder(crawl);
    const call = toolkit.caller(crawl);

    async function picture(id: string): Promise<Reply> {
      const found = /^[0-9a-f]{56}$/.test(id) ? await screenshots.get(id, clock.now()) : undefined;
      if (found === undefined) {
        throw new DomainError('not_found', 'screenshot_not_found', 'There is no such screenshot.');
      }
      const headers = {
        'content-type': found.contentType,
        'cache-control': 'private, max-age=3600',
      };
      return { status: 200, headers, body: found.bytes };
    }

    return [
      {
        methods: ['GET'],
        path: '/screenshots',
        async handle(exchange) {
          const id = exchange.parameter('id');
          if (id !== undefined || exchange.parameter('url') === undefined) return picture(id ?? '');
          const request = await bind(exchange);
          const parameters = (request.parameters ??= create(CrawlParametersSchema));
          parameters.screenshot = true;
          const response = await call(request, exchange);
          const { screenshotUrl } = response;
          if (screenshotUrl === undefined) {
            throw new DomainError(
              'unavailable',
              'screenshot_failed',
              'The page could not be crawled, so there is no picture of it.',
              { metadata: { success: 'false', pc_status: response.cbStatus } },
            );
          }
          const fields = resultFields(response, response, {
            success: 'true',
            remaining_requests: REMAINING_REQUESTS,
          });
          const taken = await picture(new URL(screenshotUrl).searchParams.get('id') ?? '');
          return { ...taken, headers: { ...toHeaders(fields), ...taken.headers } };
        },
      },
    ];
  };
}
