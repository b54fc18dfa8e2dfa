import type { DescMethod } from '@bufbuild/protobuf';
import type { DescribedApi } from './descriptors.ts';
import { type PlacedOperation, queryParameters, summaryAndDescription } from './operations.ts';
import { crawledFacts, json, jsonPage, pageReply, storedFacts, text } from './page-reply.ts';
import { errorResponses } from './replies.ts';
import type { Schema, Schemas } from './schemas.ts';

/**
 * The operations whose replies cannot be described by a rule. They replace the generated operations
 * with the same path and verb.
 */
export function documentedOperations(
  methods: ReadonlyMap<string, DescMethod>,
  api: DescribedApi,
  schemas: Schemas,
): PlacedOperation[] {
  const method = (name: string): DescMethod => {
    const found = methods.get(name);
    if (found === undefined) throw new Error(`no method ${name}`);
    return found;
  };
  const security = [{ token: [] }, { bearer: [] }];

  function pushOrCrawl(verb: 'GET' | 'POST' | 'PUT'): PlacedOperation {
    const push = method('Push');
    const crawl = method('Crawl');
    const own = new Set(['method', 'body', ...(verb === 'GET' ? ['post_content_type'] : [])]);
    const parameters = [...queryParameters(push.input, own, schemas)];
    const known = new Set([...own, ...parameters.map(({ name }) => String(name))]);
    parameters.push(...queryParameters(crawl.input, known, schemas));
    const rid = { type: 'object', properties: { rid: text }, required: ['rid'] };
    return {
      path: '/',
      verb,
      operation: {
        operationId:
          verb === 'GET' ? 'PushOrCrawl' : `PushOrCrawlBy${verb === 'PUT' ? 'Put' : 'Post'}`,
        tags: [push.parent.name],
        summary: 'Queues a URL, or crawls it in the same call',
        description: [
          'With `callback=true` or a `crawler`:',
          api.comment(push),
          'Otherwise:',
          api.comment(crawl),
        ].join('\n\n'),
        security,
        parameters: parameters.map((each) =>
          each['name'] === 'url' ? { ...each, required: true } : each,
        ),
        ...(verb === 'GET'
          ? {}
          : { requestBody: { description: 'What the target is sent.', content: { '*/*': {} } } }),
        responses: {
          200: pageReply(
            'The `rid`, or the page.',
            crawledFacts,
            ['text/html', 'text/markdown', '*/*'],
            rid,
            jsonPage,
          ),
          ...errorResponses(verb, false),
        },
      },
    };
  }

  function onStorage(
    name: string,
    path: string,
    verb: 'GET' | 'DELETE',
    reply: Schema,
  ): PlacedOperation {
    const desc = method(name);
    return {
      path,
      verb,
      operation: {
        operationId: name,
        tags: [desc.parent.name],
        ...summaryAndDescription(api.comment(desc)),
        security,
        parameters: queryParameters(desc.input, new Set(), schemas),
        responses: { 200: reply, ...errorResponses(verb, false) },
      },
    };
  }

  const rids = { type: 'array', items: text };
  const scrolled = { type: 'object', properties: { rids, scroll_id: text } };
  const deleted = {
    type: 'object',
    properties: { success: text, error: { ...text, description: '`Not Found`' } },
  };
  return [
    ...(['GET', 'POST', 'PUT'] as const).map(pushOrCrawl),
    onStorage(
      'GetResult',
      '/storage',
      'GET',
      pageReply('The result.', storedFacts, ['text/plain']),
    ),
    onStorage('DeleteResult', '/storage', 'DELETE', {
      description: 'Removed, or not there.',
      content: json(deleted),
    }),
    onStorage('ListRids', '/storage/rids', 'GET', {
      description: 'The page of `rid`s; an object with `scroll` or `scroll_id`.',
      content: json({ anyOf: [rids, scrolled] }),
    }),
  ];
}
