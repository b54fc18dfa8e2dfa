import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { create } from '@bufbuild/protobuf';
import { CrawlParametersSchema } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { Clock } from '../../domain/clock.ts';
import { DomainError, invalidField } from '../../domain/errors.ts';
import { resultFields } from '../../domain/result-fields.ts';
import { acceptsGzip } from '../accept-encoding.ts';
import type { AdapterFactory } from '../adapter.ts';
import type { Reply } from '../reply.ts';
import { assertUrlIsEncoded } from './encoded-url.ts';
import { REMAINING_REQUESTS, toHeaders } from './page.ts';

const pack = promisify(gzip);

/** The stored screenshots. */
export interface ScreenshotSource {
  /** Undefined when the identifier is unknown or its screenshot has expired. */
  get(
    id: string,
    now: Date,
  ): Promise<{ readonly contentType: string; readonly bytes: Uint8Array } | undefined>;
}

interface Picture extends Reply {
  readonly body: Uint8Array;
}

/**
 * Wrapped in gzip, not compressed, which would not make a JPEG shorter: the node SDK takes what is
 * not in gzip for UTF-8.
 */
async function packed(reply: Picture): Promise<Reply> {
  return {
    ...reply,
    headers: { ...reply.headers, 'content-encoding': 'gzip', vary: 'accept-encoding' },
    body: await pack(reply.body, { level: 0 }),
  };
}

/**
 * `/screenshots?id=`: a stored screenshot; identifiers cannot be guessed, and expire.
 * `/screenshots?url=`: crawls the page in the browser and replies with its screenshot, as public
 * clients expect of this path. They use either token.
 */
export function screenshotAdapters(screenshots: ScreenshotSource, clock: Clock): AdapterFactory {
  return (toolkit) => {
    const { crawl } = PushService.method;
    const bind = toolkit.binder(crawl);
    const call = toolkit.caller(crawl);

    async function picture(id: string): Promise<Picture> {
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
          if (id !== undefined) return picture(id);
          if (exchange.parameter('url') === undefined) {
            throw invalidField(
              'url',
              'Give the url of a page, or the id of a picture.',
              'missing_url',
            );
          }
          assertUrlIsEncoded(exchange);
          const request = await bind(exchange);
          const parameters = (request.parameters ??= create(CrawlParametersSchema));
          parameters.screenshot = true;
          // A picture needs a browser.
          exchange.call.countsAs = 'javascript';
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
          const reply = { ...taken, headers: { ...toHeaders(fields), ...taken.headers } };
          return acceptsGzip(exchange.header('accept-encoding')) ? packed(reply) : reply;
        },
      },
    ];
  };
}
