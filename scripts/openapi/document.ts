import type { DescMethod } from '@bufbuild/protobuf';
import { adapterOperations, adapterTags } from './adapter-operations.ts';
import type { DescribedApi } from './descriptors.ts';
import { documentedOperations } from './documented.ts';
import { methodOperations } from './operations.ts';
import { jsonPageSchema } from './page-reply.ts';
import { errorReplies, errorSchema } from './replies.ts';
import { createSchemas, described } from './schemas.ts';

/** What readers do, in this order; what is the operator's comes behind it. */
const TASKS = new Map([
  ['PushService', 'Push and crawl URLs'],
  ['CrawlerService', 'Crawlers'],
  ['StorageService', 'Stored results'],
  ['ActivityService', 'Queues, results and failures'],
  ['BatchService', 'Batches'],
  ['StatsService', 'Statistics and timelines'],
  ['HostService', 'Hosts'],
  ['ProxyService', 'Pools of proxies'],
  ['WatchService', 'Live streams'],
  ['AccountService', 'Accounts, for operators'],
  ['OperatorService', 'The installation, for operators'],
]);
const FIRST = [...TASKS.keys()];

/**
 * The OpenAPI 3.1 document of an API. The same descriptors result in the same document, byte for
 * byte.
 */
export function openApiDocument(api: DescribedApi, version: string): object {
  const schemas = createSchemas(api);
  const methods = new Map(
    api.services.flatMap((service) => service.methods.map((method) => [method.name, method])),
  );
  const placed = [
    ...[...methods.values()].flatMap((method) => methodOperations(method, api, schemas)),
    ...documentedOperations(methods, api, schemas),
    ...adapterOperations(crawlMethod(methods), schemas),
  ];
  const paths = new Map<string, Record<string, object>>();
  for (const { path, verb, operation } of placed) {
    const item = paths.get(path) ?? {};
    item[verb.toLowerCase()] = operation;
    paths.set(path, item);
  }
  const sorted = Object.fromEntries([...paths].sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Queued crawler',
      version,
      description:
        'A managed queue of URLs to crawl: create a crawler, push URLs, and get each result at a webhook or from storage. The same methods answer over Connect, gRPC and gRPC-Web.',
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'A service started with defaults.' }],
    tags: [
      ...[...api.services]
        .sort((a, b) => rank(a.name) - rank(b.name))
        .map((service) => ({
          name: service.name,
          'x-displayName': TASKS.get(service.name) ?? service.name,
          ...described(api.comment(service)),
        })),
      ...adapterTags,
    ],
    paths: sorted,
    components: {
      securitySchemes: {
        token: {
          type: 'apiKey',
          in: 'query',
          name: 'token',
          description: 'A Normal or JavaScript token, matching the crawler.',
        },
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The same token as a header; for accounts, the admin token.',
        },
      },
      responses: errorReplies(),
      schemas: usedBy(sorted, {
        ...schemas.collected(),
        Error: errorSchema,
        JsonPage: jsonPageSchema,
      }),
    },
  };
}

function rank(service: string): number {
  const at = FIRST.indexOf(service);
  return at === -1 ? FIRST.length : at;
}

function crawlMethod(methods: ReadonlyMap<string, DescMethod>): DescMethod {
  const found = methods.get('Crawl');
  if (found === undefined) throw new Error('no method Crawl');
  return found;
}

/** The schemas to which the paths lead: operations that were replaced leave some behind. */
function usedBy(paths: object, schemas: Readonly<Record<string, object>>): object {
  const used = new Set<string>(['Error']);
  const follow = (from: object): void => {
    for (const [, name = ''] of JSON.stringify(from).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (used.has(name)) continue;
      used.add(name);
      follow(schemas[name] ?? {});
    }
  };
  follow(paths);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
}
