import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  type BulkGetResultsRequest,
  type BulkGetResultsResponse,
  StorageFormat,
  StorageService,
  type StoredResult,
  StoredResultSchema,
} from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { gzipContentLength } from '../../domain/body-coding.ts';
import { pageEnvelope, type ResultFields, resultFields } from '../../domain/result-fields.ts';
import { acceptsGzip } from '../accept-encoding.ts';
import type { Adapter, AdapterFactory, AdapterToolkit } from '../adapter.ts';
import type { Exchange } from '../exchange.ts';
import { envelopeReply, JSON_TYPE, jsonReply, type Reply } from '../reply.ts';
import { formatWithOffset, UTC_OFFSET } from '../timestamp.ts';
import { toHeaders } from './page.ts';

const unpack = promisify(gunzip);

/** A bulk reply up to this length is built as a whole and has a Content-Length. */
const WHOLE_BYTES = 256 * 1024;

/**
 * `/storage` for GET and DELETE, `/storage/rids` and `/storage/bulk`, in the shapes that public
 * clients expect.
 */
export const storage: AdapterFactory = (toolkit) => {
  const { getResult, deleteResult, listRids } = StorageService.method;
  const bindGet = toolkit.binder(getResult);
  const callGet = toolkit.caller(getResult);
  const bindDelete = toolkit.binder(deleteResult);
  const callDelete = toolkit.caller(deleteResult);
  const writeDeleted = toolkit.writer(deleteResult.output);
  const bindList = toolkit.binder(listRids);
  const callList = toolkit.caller(listRids);

  return [
    {
      path: '/storage',
      methods: ['GET'],
      async handle(exchange) {
        const request = await bindGet(exchange);
        const { result } = await callGet(request, exchange);
        if (result === undefined) throw new Error('GetResult answered no result');
        if (request.format === StorageFormat.JSON) return jsonResult(result, exchange);
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
    bulk(toolkit),
  ];
};

/**
 * A bare array of all requested results, written one by one, so that a reply of 1 GB takes the
 * memory of a few results. All parts have the same call, so `auto_delete` takes effect when the client
 * has the whole array: half an array is of no use.
 */
function bulk(toolkit: AdapterToolkit): Adapter {
  const { bulkGetResults } = StorageService.method;
  const bind = toolkit.binder(bulkGetResults, '*');
  const read = toolkit.caller(bulkGetResults);
  const writeResult = toolkit.writer(StoredResultSchema);
  const write = (result: StoredResult): string =>
    writeResult(result).replace(/("stored_at":"[^"]*)Z"/, `$1${UTC_OFFSET}"`);

  async function* pieces(
    request: BulkGetResultsRequest,
    first: BulkGetResultsResponse,
    exchange: Exchange,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    let mark = '[';
    for (let part = first; ; ) {
      for (const result of part.results) {
        yield Buffer.from(mark + write(result));
        mark = ',';
      }
      const rids = part.deferredRids;
      if (rids.length === 0) break;
      part = await read({ ...request, rids }, exchange);
    }
    yield Buffer.from(mark === '[' ? '[]' : ']');
  }

  return {
    path: '/storage/bulk',
    methods: ['POST'],
    async handle(exchange) {
      const request = await bind(exchange);
      const first = await read(request, exchange);
      const { results, deferredRids } = first;
      const bytes = results.reduce((sum, { body }) => sum + body.byteLength, 0);
      if (bytes > WHOLE_BYTES || deferredRids.length > 0) {
        const body = pieces(request, first, exchange);
        return { status: 200, headers: { 'content-type': JSON_TYPE }, body };
      }
      return jsonReply(`[${results.map(write).join(',')}]`);
    },
  };
}

function storedFields(result: StoredResult): ResultFields {
  return resultFields(result, result, { stored_at: formatWithOffset(result.storedAt ?? {}) });
}

async function jsonResult(result: StoredResult, exchange: Exchange): Promise<Reply> {
  // The reply is made of the page in pieces.
  const { body: packed } = result;
  const length = gzipContentLength(packed);
  if (length > 0) {
    exchange.call.room.giveBack();
    await exchange.call.room.take(packed.byteLength + length);
  }
  const fields = storedFields(result);
  const page = await unpacked(result);
  return envelopeReply(pageEnvelope(fields, page), page, toHeaders(fields));
}

async function pageResult(result: StoredResult, packed: boolean): Promise<Reply> {
  const isPacked = packed && result.body.byteLength > 0;
  const isText = /;\s*charset=utf-8$/i.test(result.contentType);
  return {
    status: 200,
    headers: {
      ...toHeaders(storedFields(result)),
      // Without a charset some clients read text as Latin-1.
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
