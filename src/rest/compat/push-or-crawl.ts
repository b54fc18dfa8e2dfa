import { Format } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import {
  type CrawlRequest,
  type CrawlResponse,
  type PushRequest,
  PushService,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { methodPolicy } from '../../api/policy.ts';
import { toHeaderText } from '../../domain/header-rules.ts';
import { dataEnvelope, pageEnvelope, resultFields } from '../../domain/result-fields.ts';
import type { AdapterFactory } from '../adapter.ts';
import type { Exchange } from '../exchange.ts';
import { jsonReply, type Reply } from '../reply.ts';
import { aboutReply } from './about.ts';
import { toHeaders } from './page.ts';

/**
 * `/` for GET, POST and PUT: with `callback=true` or a `crawler` the URL is pushed, otherwise crawled in the same call. A body
 * is what the target is sent.
 */
export const pushOrCrawl: AdapterFactory = (parts) => {
  const { push, crawl } = PushService.method;
  const binders = {
    push: { query: parts.binder(push), body: parts.binder(push, 'body') },
    crawl: { query: parts.binder(crawl), body: parts.binder(crawl, 'body') },
  };
  const callPush = parts.caller(push);
  const callCrawl = parts.caller(crawl);

  return [
    {
      path: '/',
      methods: ['GET', 'POST', 'PUT'],
      getChanges: true,
      maxBodyBytes: methodPolicy(push).maxBytes,
      async handle(exchange) {
        const { method, parameters, call } = exchange;
        if (method === 'GET' && parameters.length === 0 && call.bearer === undefined) {
          return aboutReply();
        }
        const source = exchange.method === 'POST' || exchange.method === 'PUT' ? 'body' : 'query';
        if (isPush(exchange)) {
          const request = await binders.push[source](exchange);
          completeTarget(request, exchange);
          const { rid } = await callPush(request, exchange);
          return ridReply(rid);
        }
        const request = await binders.crawl[source](exchange);
        completeTarget(request, exchange);
        const response = await callCrawl(request, exchange);
        return request.async === true ? ridReply(response.rid ?? '') : pageReply(request, response);
      },
    },
  ];
};

const no: ReadonlySet<string | undefined> = new Set([
  undefined,
  '',
  'false',
  'False',
  'FALSE',
  '0',
]);

function isPush(exchange: Exchange): boolean {
  const callback = exchange.parameter('callback') ?? '';
  // A crawler alone says enough; that it is not meant for the queue has to be said.
  return callback === '' ? (exchange.parameter('crawler') ?? '') !== '' : !no.has(callback);
}

/** What the target is sent follows the call itself, not parameters of those names. */
function completeTarget(request: PushRequest | CrawlRequest, exchange: Exchange): void {
  request.method = exchange.method;
  if (request.method === 'GET') {
    delete request.body;
    delete request.postContentType;
    return;
  }
  const own = exchange.header('content-type');
  // Clients put text/plain on any string by themselves; the documented default is better than that.
  if (request.postContentType === undefined && own !== undefined && !/^text\/plain/i.test(own)) {
    request.postContentType = own;
  }
}

/** One key only: a client of old tests for that. */
function ridReply(rid: string): Reply {
  return jsonReply(JSON.stringify({ rid }), 200, { rid });
}

function pageReply(request: CrawlRequest, response: CrawlResponse): Reply {
  const fields = resultFields(response, response, { storage_url: response.storageUrl });
  const { format, pretty = false, scraper = '', autoparse } = request.parameters ?? {};
  // Some clients look for the metadata in the headers whatever the format.
  const headers = toHeaders(fields);
  if (format === Format.JSON) {
    return jsonReply(pageEnvelope(fields, response.body, pretty), 200, headers);
  }
  if (scraper !== '' || autoparse === true) {
    return jsonReply(dataEnvelope(fields, response.body), 200, headers);
  }
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': toHeaderText(pageType(response)),
      // The page comes from anywhere and must not run as this origin, where the console lives.
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    },
    body: response.body,
  };
}

/**
 * The type a page is sent under. JSON never under the value by which clients recognise the service's own envelope, and only when it
 * can be read: they parse whatever says that it is JSON, and some end when it is not.
 */
function pageType({ contentType, body }: CrawlResponse): string {
  if (contentType === '') return 'application/octet-stream';
  if (/json/i.test(contentType)) {
    if (!isJsonValue(body)) return 'text/plain; charset=utf-8';
    return contentType.replace(/\s*;\s*charset=[^;]*/gi, '');
  }
  return /^text\/[^;]+$/.test(contentType) ? `${contentType}; charset=utf-8` : contentType;
}

function isJsonValue(body: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString());
    // Clients look into what they have parsed, and null has no inside.
    return value !== null;
  } catch {
    // Empty, or broken: text.
    return false;
  }
}
