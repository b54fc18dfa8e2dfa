import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  StorageFormat,
  StorageService,
  type StoredResult,
} from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { acceptsGzip } from '../accept-encoding.ts';
import type { AdapterFactory } from '../adapter.ts';
import { jsonReply, type Reply } from '../reply.ts';
import { textFromTimestamp } from '../timestamp.ts';
import { envelopeFrom, headersFromFacts, pageFactsOf } from './page.ts';

const unpack = promisify(gunzip);

/** `/storage` for GET and DELETE, and `/storage/rids`, in the shapes that existing clients expect. */
export const storage: AdapterFactory = (parts) => {
  const { getResult, deleteResult, listRids } = StorageService.method;
  const bindGet = parts.binder(getResult);
  const callGet = parts.caller(getResult);
  const bindDelete = parts.binder(deleteResult);
  const callDelete = parts.caller(deleteResult);
  const writeDeleted = parts.writer(deleteResult.output);
  const bindList = parts.binder(listRids);
  const callList = parts.caller(listRids);

  return [
    {
      path: '/storage',
      methods: ['GET'],
      async handle(exchange) {
        const request = await bindGet(exchange);
        const { result } = await callGet(request, exchange);
        if (result === undefined) throw new Error('GetResult answered no result');
        if (request.format === StorageFormat.JSON) return jsonResult(result);
        return pageResult(result, acceptsGzip(exchange.header('accept-encoding')));
      },
    },
    {
      path: '/storage',
      methods: ['DELETE'],
      async handle(exchange) {
        try {
          return jsonReply(writeDeleted(await callDelete(await bindDelete(exchange), exchange)));
        } catch (error) {
          if (!(error instanceof ConnectError) || error.code !== Code.NotFound) throw error;
          return jsonReply('{"error":"Not Found"}');
        }
      },
    },
    {
      path: '/storage/rids',
      methods: ['GET'],
      async handle(exchange) {
        const request = await bindList(exchange);
        const { rids, scrollId } = await callList(request, exchange);
        const scrolls = request.scroll === true || (request.scrollId ?? '') !== '';
        return jsonReply(JSON.stringify(scrolls ? { rids, scroll_id: scrollId } : rids));
      },
    },
  ];
};

function factsOf(result: StoredResult) {
  // Clients of old expect an offset, not the letter Z.
  const storedAt = textFromTimestamp(result.storedAt ?? {}).replace('Z', '+00:00');
  return pageFactsOf(result, { stored_at: storedAt });
}

async function jsonResult(result: StoredResult): Promise<Reply> {
  const facts = factsOf(result);
  const body = envelopeFrom(facts, await unpacked(result), false);
  return jsonReply(body, 200, headersFromFacts(facts));
}

async function pageResult(result: StoredResult, packed: boolean): Promise<Reply> {
  const isPacked = packed && result.body.byteLength > 0;
  const isText = /;\s*charset=utf-8$/i.test(result.contentType);
  return {
    status: 200,
    headers: {
      ...headersFromFacts(factsOf(result)),
      // Without a charset some clients take text for Latin-1.
      'content-type': isText ? 'text/plain; charset=utf-8' : 'text/plain',
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    },
    body: isPacked ? result.body : await unpacked(result),
  };
}

async function unpacked({ body }: StoredResult): Promise<Uint8Array> {
  return body.byteLength === 0 ? body : unpack(body);
}
