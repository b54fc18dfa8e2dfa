import { Format } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import {
  type CrawlRequest,
  type CrawlResponse,
  type PushRequest,
  PushService,
} from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { methodPolicy } from '../../api/policy.ts';
import { toHeaderText } from '../../domain/header-rules.ts';
import { inTurns } from '../../domain/in-turns.ts';
import { isJsonValue } from '../../domain/is-json-value.ts';
import { dataEnvelope, pageEnvelope, resultFields } from '../../domain/result-fields.ts';
import type { AdapterFactory } from '../adapter.ts';
import type { Exchange } from '../exchange.ts';
import { badValue } from '../gateway-error.ts';
import { envelopeReply, jsonReply, type Reply } from '../reply.ts';
import { formatWithOffset } from '../timestamp.ts';
import { aboutReply } from './about.ts';
import { assertUrlIsEncoded } from './encoded-url.ts';
import { toHeaders } from './page.ts';

/**
 * `/` for GET, POST and PUT: with `callback=true` or a `crawler` the URL is pushed, otherwise it is
 * crawled in the same call. The target receives the body of the request.
 */
export const pushOrCrawl: AdapterFactory = (toolkit) => {
  const { push, crawl } = PushService.method;
  const binders = {
    push: { query: toolkit.binder(push), body: toolkit.binder(push, 'body') },
    crawl: { query: toolkit.binder(crawl), body: toolkit.binder(crawl, 'body') },
  };
  const pushOnly = push.input.fields
    .map(({ name }) => name)
    .filter((name) => name !== 'crawler' && name !== 'callback')
    .filter((name) => !crawl.input.fields.some((field) => field.name === name));
  const callPush = toolkit.caller(push);
  const callCrawl = toolkit.caller(crawl);

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
        assertUrlIsEncoded(exchange);
        for (const name of ['callback', 'crawler']) assertGivenOnce(exchange, name);
        assertNoCallbackUrl(exchange);
        const source = exchange.method === 'POST' || exchange.method === 'PUT' ? 'body' : 'query';
        if (isPush(exchange)) {
          const request = await binders.push[source](exchange);
          completeTarget(request, exchange);
          const { rid, duplicate, ignoredParameters } = await callPush(request, exchange);
          return ridReply(rid, ignoredParameters, duplicate);
        }
        const request = await binders.crawl[source](exchange);
        completeTarget(request, exchange);
        const response = await callCrawl(request, exchange);
        // They belong to the job of a crawler, and a client may have forgotten to name one.
        response.ignoredParameters.push(
          ...pushOnly.filter((name) => (exchange.parameter(name) ?? '') !== ''),
        );
        return request.async === true
          ? ridReply(response.rid ?? '', response.ignoredParameters)
          : pageReply(request, response);
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
  // `crawler` without `callback` is a push; `callback=false` forces an inline crawl.
  return callback === '' ? (exchange.parameter('crawler') ?? '') !== '' : !no.has(callback);
}

/** Throws for two values of a parameter that decides which method is called. */
function assertGivenOnce({ parameters }: Exchange, name: string): void {
  const values = parameters.filter((_, at) => at % 2 === 1 && parameters[at - 1] === name);
  if (new Set(values).size > 1) throw badValue(name, 'given once');
}

/** Other services take the URL of the webhook there, and here it is a setting of the crawler. */
function assertNoCallbackUrl(exchange: Exchange): void {
  if (!/^https?:/i.test(exchange.parameter('callback') ?? '')) return;
  const expected =
    'true or false; the URL that results are posted to is callback_url of the crawler';
  throw badValue('callback', expected, { allowed: ['true', 'false'] });
}

/** The target receives the method and body of the call itself, not parameters of those names. */
function completeTarget(request: PushRequest | CrawlRequest, exchange: Exchange): void {
  request.method = exchange.method;
  if (request.method === 'GET') {
    delete request.body;
    delete request.postContentType;
    return;
  }
  const own = exchange.header('content-type');
  // Many clients send text/plain for any string by default; the documented default suits targets
  // better.
  if (request.postContentType === undefined && own !== undefined && !/^text\/plain/i.test(own)) {
    request.postContentType = own;
  }
}

/** Exactly one key: a public client checks for that. */
function ridReply(rid: string, ignored: readonly string[], duplicate = false): Reply {
  const headers = { rid, ...ignoredField(ignored), ...(duplicate ? { duplicate: 'true' } : {}) };
  return jsonReply(JSON.stringify({ rid }), 200, headers);
}

function ignoredField(names: readonly string[]): { readonly ignored_parameters?: string } {
  return names.length === 0 ? {} : { ignored_parameters: names.join(',') };
}

async function pageReply(request: CrawlRequest, response: CrawlResponse): Promise<Reply> {
  const fields = resultFields(response, response, {
    storage_url: response.storageUrl,
    stored_at: response.storedAt && formatWithOffset(response.storedAt),
    ...ignoredField(response.ignoredParameters),
  });
  const { format, pretty = false, scraper = '', autoparse } = request.parameters ?? {};
  // Some clients read the metadata from the headers, whatever the format.
  const headers = toHeaders(fields);
  if (format === Format.JSON) {
    return envelopeReply(pageEnvelope(fields, response.body, pretty), response.body, headers);
  }
  if (scraper !== '' || autoparse === true) {
    return envelopeReply(dataEnvelope(fields, response.body), response.body, headers);
  }
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': toHeaderText(await pageType(response)),
      // The page comes from an arbitrary site and must not run with the rights of this origin.
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    },
    body: response.body,
  };
}

/**
 * The Content-Type of a page. JSON pages never get the type by which clients recognise the
 * service's own envelope, and get a JSON type only when they can be parsed. Clients parse whatever
 * is labelled JSON, and some crash when that fails.
 */
async function pageType({ contentType, body }: CrawlResponse): Promise<string> {
  if (contentType === '') return 'application/octet-stream';
  if (/json/i.test(contentType)) {
    if (!(await inTurns(isJsonValue(body)))) return 'text/plain; charset=utf-8';
    return contentType.replace(/\s*;\s*charset=[^;]*/gi, '');
  }
  return /^text\/[^;]+$/.test(contentType) ? `${contentType}; charset=utf-8` : contentType;
}
