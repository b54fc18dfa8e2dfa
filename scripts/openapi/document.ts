import type { DescribedApi } from './descriptors.ts';
import { documentedOperations } from './documented.ts';
import { methodOperations } from './operations.ts';
import { errorReplies, errorSchema } from './replies.ts';
import { createSchemas, described } from './schemas.ts';

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
  ];
  const paths = new Map<string, Record<string, object>>();
  for (const { path, verb, operation } of placed) {
    const item = paths.get(path) ?? {};
    item[verb.toLowerCase()] = operation;
    paths.set(path, item);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Queued crawler',
      version,
      description:
        'A managed queue of URLs to crawl: create a crawler, push URLs, and get each result at a webhook or from storage. The same methods answer over Connect, gRPC and gRPC-Web.',
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'A service started with defaults.' }],
    tags: api.services.map((service) => ({
      name: service.name,
      ...described(api.comment(service)),
    })),
    paths: Object.fromEntries([...paths].sort(([a], [b]) => (a < b ? -1 : 1))),
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
      schemas: { ...schemas.collected(), Error: errorSchema },
    },
  };
}
