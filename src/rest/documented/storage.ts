import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  StorageFormat,
  StorageService,
  type StoredResult,
} from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
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
        return request.format === StorageFormat.JSON ? jsonResult(result) : pageResult(result);
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
  const page = result.body.byteLength === 0 ? result.body : await unpack(result.body);
  return jsonReply(envelopeFrom(factsOf(result), page, false));
}

function pageResult(result: StoredResult): Reply {
  const isPacked = result.body.byteLength > 0;
  return {
    status: 200,
    headers: {
      ...headersFromFacts(factsOf(result)),
      'content-type': 'text/plain',
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
      'x-content-type-options': 'nosniff',
    },
    body: result.body,
  };
}
