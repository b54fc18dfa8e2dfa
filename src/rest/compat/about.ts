import { readFileSync } from 'node:fs';
import type { Adapter } from '../adapter.ts';
import { jsonReply, type Reply, SAME_ORIGIN } from '../reply.ts';

const root = new URL('../../..', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  version: string;
};

/**
 * The reply to a call of `/` without parameters: it says what service answers. The status is 401,
 * as for every call without a token.
 */
export function aboutReply(): Reply {
  const body = {
    error:
      'This is a queued crawler service. Its calls carry an access token: ?token=TOKEN, /crawler/TOKEN/..., or Authorization: Bearer TOKEN.',
    code: 'missing_token',
    field: 'token',
    service: 'queued-crawler',
    version,
    documentation: '/openapi.json',
    reference: '/docs',
  };
  return jsonReply(JSON.stringify(body), 401, { 'www-authenticate': 'Bearer' });
}

/**
 * `/openapi.json`: the document of the REST API, for people and generators. It names the address of
 * the service, which `publicUrl` returns.
 */
export function openApi(publicUrl: () => string): Adapter {
  let text: string | undefined;
  return {
    path: '/openapi.json',
    methods: ['GET'],
    async handle() {
      text ??= withServer(readFileSync(new URL('docs/openapi.json', root), 'utf8'), publicUrl());
      return jsonReply(text, 200, SAME_ORIGIN);
    },
  };
}

function withServer(document: string, url: string): string {
  const parsed = JSON.parse(document) as object;
  return JSON.stringify({ ...parsed, servers: [{ url }] }, undefined, 2);
}
