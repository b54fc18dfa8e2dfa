import type { DescMethod } from '@bufbuild/protobuf';
import { type PlacedOperation, queryParameters } from './operations.ts';
import { countedFacts, envelope, factHeaders, integer, json, text } from './page-reply.ts';
import { errorResponses } from './replies.ts';
import { described, type Schema, type Schemas } from './schemas.ts';

const security = [{ token: [] }, { bearer: [] }];

/** The operations of paths that no method of the API has. `crawl` is the method that they call. */
export function adapterOperations(crawl: DescMethod, schemas: Schemas): PlacedOperation[] {
  const crawlParameters = queryParameters(crawl.input, new Set(['method', 'body']), schemas);
  const withUrl = (isRequired: boolean) =>
    crawlParameters.map((each) =>
      each['name'] === 'url' && isRequired ? { ...each, required: true } : each,
    );
  return [
    get('/scraper', 'Scrape', 'Compatibility', {
      summary: 'Crawls a page and answers with its data',
      description:
        '`autoparse` unless `scraper` is given. Clients of the reference service call it.',
      parameters: withUrl(true),
      reply: {
        description: 'The data, or the page as text without data.',
        headers: factHeaders(countedFacts),
        content: json(envelope(countedFacts)),
      },
    }),
    get('/leads', 'FindLeads', 'Compatibility', {
      summary: "Finds the e-mail addresses on the first page of a domain's site",
      parameters: [query('domain', 'A host name.', true)],
      reply: { description: 'Done.', content: json(leads) },
    }),
    get('/screenshots', 'GetScreenshot', 'Compatibility', {
      summary: 'A picture: one that was taken before, or that of a page',
      description:
        'With `id`, which `screenshot_url` has, the picture of a crawl of the last hour, without a token. With `url` the page is crawled in the browser, whichever token the call carries.',
      parameters: [query('id', 'Of a picture that was taken before.', false), ...withUrl(false)],
      reply: {
        description: 'The picture.',
        headers: factHeaders({
          ...countedFacts,
          success: { ...text, enum: ['true'], description: 'With `url`.' },
        }),
        content: { 'image/jpeg': { schema: { type: 'string', contentEncoding: 'binary' } } },
      },
    }),
    get('/openapi.json', 'GetDocument', 'Service', {
      summary: 'This document',
      isPublic: true,
      reply: { description: 'OpenAPI 3.1.', content: json({ type: 'object' }) },
    }),
    get('/healthz', 'GetLiveness', 'Service', {
      summary: 'Whether the process lives',
      isPublic: true,
      reply: plainText('It does.'),
    }),
    get('/readyz', 'GetReadiness', 'Service', {
      summary: 'Whether the service can answer calls now',
      isPublic: true,
      reply: plainText('It can.'),
      unavailable: plainText('It cannot: it stops, or its database does not answer.'),
    }),
    get('/metrics', 'GetMetrics', 'Service', {
      summary: 'Metrics for Prometheus',
      isPublic: true,
      reply: plainText('In the text format of Prometheus.'),
    }),
  ];
}

interface Described {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Schema[];
  readonly reply: Schema;
  /** Needs no token, and has no errors of methods. */
  readonly isPublic?: boolean;
  readonly unavailable?: Schema;
}

function get(path: string, operationId: string, tag: string, of: Described): PlacedOperation {
  const { isPublic = false, unavailable } = of;
  return {
    path,
    verb: 'GET',
    operation: {
      operationId,
      tags: [tag],
      summary: of.summary,
      ...described(of.description ?? ''),
      security: isPublic ? [] : security,
      parameters: of.parameters ?? [],
      responses: {
        200: of.reply,
        ...(isPublic ? {} : errorResponses('GET', false)),
        ...(unavailable === undefined ? {} : { 503: unavailable }),
      },
    },
  };
}

function query(name: string, description: string, required: boolean): Schema {
  return { name, in: 'query', description, ...(required ? { required } : {}), schema: text };
}

function plainText(description: string): Schema {
  return { description, content: { 'text/plain': { schema: text } } };
}

const leads: Schema = {
  type: 'object',
  properties: {
    success: { type: 'boolean', description: 'Whether the page could be crawled.' },
    remaining_requests: integer,
    domain: text,
    leads: {
      type: 'array',
      items: {
        type: 'object',
        properties: { email: text, sources: { type: 'array', items: text } },
        required: ['email', 'sources'],
      },
    },
  },
  required: ['success', 'remaining_requests', 'domain', 'leads'],
};

/** What the tags of these operations are for. */
export const adapterTags = [
  { name: 'Compatibility', description: 'Paths that clients of the reference service call.' },
  { name: 'Service', description: 'The service itself.' },
];
