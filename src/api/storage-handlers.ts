import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  ScrollOrder,
  StorageFormat,
  StorageService,
  type StoredResultSchema,
  type StreamResultsRequest,
} from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import type { TokenOwner } from '../domain/account.ts';
import { missingField, ridNotFound } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { StoredResult } from '../domain/result.ts';
import { acquireWithin } from '../fairness/acquire-within.ts';
import type { FairPool } from '../fairness/fair-pool.ts';
import { ROOM_WAIT_MS } from '../http/room.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { MarkdownPages } from '../service/reads/markdown-pages.ts';
import type { ResultChunk, ResultStreams } from '../service/reads/result-streams.ts';
import type { Storage } from '../service/reads/storage.ts';
import { callerOf } from './caller-of.ts';
import { gzipBody } from './gzip-body.ts';
import { type Call, type Method, toMethods } from './method.ts';
import { whileAuthenticated } from './while-authenticated.ts';

type ResultMessage = MessageInitShape<typeof StoredResultSchema>;

/** How often a page is in memory: as read, in its message, encoded, and in its envelope. */
const COPIES = 4;

/**
 * Reserves memory for pages. The request's own is given back first: it is no longer needed, and a
 * call that held it while it waits would keep others waiting.
 */
async function makeRoom(call: Call, bytes: number): Promise<void> {
  if (bytes === 0) return;
  call.room.giveBack();
  await call.room.take(bytes * COPIES);
}

/** The methods of the storage service. */
export function storageHandlers(deps: {
  readonly authenticator: Authenticator;
  readonly tokenWatch: TokenWatch;
  readonly storage: Storage;
  readonly markdownPages: MarkdownPages;
  readonly resultStreams: ResultStreams;
  readonly quotas: Pick<Quotas, 'takeRequest'>;
  /** Slots for the calls of all accounts. */
  readonly slots: FairPool;
  readonly logger: Logger;
}): Method[] {
  const { authenticator, tokenWatch, storage, markdownPages, resultStreams, quotas, slots } = deps;
  const { logger } = deps;

  /** Reads a chunk of a stream as a call of its own would be: in a slot, with a token that works. */
  async function readChunk(request: StreamResultsRequest, call: Call, chunk: ResultChunk) {
    const token = request.token === '' ? call.bearer : request.token;
    const owner = await authenticator.authenticate(token, call.remote);
    await makeRoom(call, chunk.bytes);
    const { accountId } = owner.account;
    const slot = await acquireWithin(slots, { accountId }, 1, ROOM_WAIT_MS);
    try {
      const found = await storage.getMany(
        owner,
        chunk.results.map(({ rid }) => rid),
      );
      return new Map(found.map((result) => [result.rid, result]));
    } finally {
      slot.release();
    }
  }

  async function readMany(
    owner: TokenOwner,
    rids: readonly string[],
    bytes: number,
    call: Call,
  ): Promise<ResultMessage[]> {
    await makeRoom(call, bytes);
    const messages: ResultMessage[] = [];
    for (const result of await storage.getMany(owner, rids)) {
      messages.push(await resultMessage(result, call));
    }
    return messages;
  }

  /** Shows held results again. If that fails, they are readable when the hold ends. */
  async function release(owner: TokenOwner, held: readonly string[]): Promise<void> {
    if (held.length === 0) return;
    await storage.release(owner, held).catch((error: unknown) => {
      logger.warn({ err: error }, 'held results were not released');
    });
  }

  /** Removes held results once the client has them, and shows them again if it does not get them. */
  function endHold(owner: TokenOwner, held: readonly string[], call: Call): void {
    void call.received
      .then(async (isWhole) => {
        // An error is received whole, too.
        if (isWhole && call.failure === undefined) await storage.remove(owner, held);
        else await release(owner, held);
      })
      // They are readable again when the hold ends.
      .catch((error: unknown) => logger.warn({ err: error }, 'read results were not removed'));
  }

  /** Opening a stream counts as a call of the account. */
  async function* streamResults(request: StreamResultsRequest, call: Call) {
    const owner = callerOf(call);
    quotas.takeRequest(owner.account);
    const open = (signal: AbortSignal) => resultStreams.open(owner, request, signal);
    for await (const chunk of whileAuthenticated(tokenWatch, call, open)) {
      const results = await readChunk(request, call, chunk);
      for (const { rid, resumeToken } of chunk.results) {
        const result = results.get(rid);
        results.delete(rid);
        if (result !== undefined) yield { result: await resultMessage(result, call), resumeToken };
      }
      if (chunk.results.length === 0) yield { resumeToken: chunk.resumeToken };
      call.room.giveBack();
    }
  }

  return toMethods(StorageService, {
    async getResult(request, call) {
      const owner = callerOf(call);
      const bytes = request.rid === '' ? 0 : await storage.pageBytes(owner, request.rid);
      await makeRoom(call, bytes);
      const result = await storage.get(owner, request.rid, request.url);
      if (request.format !== StorageFormat.MD) return { result: await resultMessage(result, call) };
      const packed = await toGzip(result, call);
      const needed = markdownPages.bytes(packed);
      if (needed > 0) await call.room.take(needed * 2);
      const markdown = await markdownPages.convert(owner, packed, call.signal);
      return { result: await resultMessage(markdown, call) };
    },
    async bulkGetResults(request, call) {
      const owner = callerOf(call);
      const { autoDelete } = request;
      const selection = await storage.select(owner, request.rids, { holds: autoDelete });
      const { rids, bytes, deferred } = selection;
      const held = autoDelete ? rids : [];
      try {
        const results = await readMany(owner, rids, bytes, call);
        if (held.length > 0) endHold(owner, held, call);
        return { results, deferredRids: [...deferred] };
      } catch (error) {
        void release(owner, held);
        throw error;
      }
    },
    async deleteResult(request, call) {
      if (request.rid === '') {
        throw missingField('rid');
      }
      const removed = await storage.remove(callerOf(call), [request.rid]);
      if (removed.size === 0) {
        throw ridNotFound('result', request.rid);
      }
      return { success: 'The Storage item has been deleted successfully' };
    },
    async bulkDeleteResults(request, call) {
      const removed = await storage.remove(callerOf(call), request.rids);
      return {
        results: request.rids.map((rid) => ({
          rid,
          result: removed.has(rid) ? 'Deleted' : 'Not Found',
          status: removed.has(rid),
        })),
      };
    },
    async listRids(request, call) {
      const { limit, scrollId } = request;
      const order = request.scrollOrder === ScrollOrder.ASC ? 'asc' : 'desc';
      const page = await storage.rids(callerOf(call), { limit, order, cursor: scrollId });
      return { rids: page.rids, scrollId: page.cursor ?? '' };
    },
    streamResults,
    async getBatchResults(request, call) {
      const owner = callerOf(call);
      if (request.batch === '') throw missingField('batch');
      const { bytes, resumeToken, isEnd, ...chunk } = await resultStreams.next(owner, request);
      const rids = chunk.results.map(({ rid }) => rid);
      return { results: await readMany(owner, rids, bytes, call), resumeToken, isEnd };
    },
    async acknowledgeResults(request, call) {
      return { removed: BigInt(await resultStreams.acknowledge(callerOf(call), request)) };
    },
    async countResults(_request, call) {
      return { totalCount: BigInt(await storage.count(callerOf(call))) };
    },
  });
}

/** The result with its page in gzip, which every client reads. The call takes the memory that this needs in addition. */
async function toGzip(result: StoredResult, call: Call): Promise<StoredResult> {
  const body = await gzipBody({ coding: result.coding, bytes: result.body });
  const more = body.byteLength - result.body.byteLength;
  if (more > 0) await call.room.take(more * COPIES);
  return { ...result, coding: 'gzip', body };
}

/** The message of a result, whose page is gzip. */
async function resultMessage(result: StoredResult, call: Call): Promise<ResultMessage> {
  const { body } = await toGzip(result, call);
  return {
    ...result,
    ...result.details,
    pcStatus: result.cbStatus,
    storedAt: timestampFromDate(result.storedAt),
    body: body === result.body ? new Uint8Array(body) : body,
  };
}
