import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type BatchSchema,
  BatchService,
  BatchState,
} from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { type Batch, failedOf, leftOf, removedOf } from '../domain/batch.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { BatchManagement } from '../service/batches/batches.ts';
import { callerOf } from './caller-of.ts';
import { optionalTimestamp, toFailureCounts } from './crawler-messages.ts';
import { type Method, toMethods } from './method.ts';
import { toListingPart, toPageToken } from './page-token.ts';
import { whileAuthenticated } from './while-authenticated.ts';

/** The methods of the batch service. */
export function batchHandlers(deps: {
  readonly tokenWatch: TokenWatch;
  readonly batches: BatchManagement;
  readonly quotas: Pick<Quotas, 'takeRequest'>;
}): Method[] {
  const { tokenWatch, batches, quotas } = deps;
  return toMethods(BatchService, {
    async listBatches(request, call) {
      const owner = callerOf(call);
      const { rows, cursor } = await batches.list(owner, request.name, toListingPart(request));
      return { batches: rows.map(toBatchMessage), nextPageToken: toPageToken(cursor) };
    },
    async getBatch(request, call) {
      const owner = callerOf(call);
      return { batch: toBatchMessage(await batches.get(owner, request.name, request.batch)) };
    },
    async *watchBatch(request, call) {
      const owner = callerOf(call);
      quotas.takeRequest(owner.account);
      const open = (signal: AbortSignal) =>
        batches.watch(owner, request.name, request.batch, signal);
      for await (const batch of whileAuthenticated(tokenWatch, call, open)) {
        yield { batch: toBatchMessage(batch) };
      }
    },
    async closeBatch(request, call) {
      const owner = callerOf(call);
      return { batch: toBatchMessage(await batches.close(owner, request.name, request.batch)) };
    },
    async cancelBatch(request, call) {
      const owner = callerOf(call);
      const { removed, hasMore } = await batches.cancel(owner, request.name, request.batch);
      return { removed: BigInt(removed), hasMore };
    },
  });
}

function toBatchMessage(batch: Batch): MessageInitShape<typeof BatchSchema> {
  const left = leftOf(batch);
  const ended = batch.accepted - left;
  return {
    name: batch.name,
    id: batch.batchId,
    state: stateOf(batch),
    accepted: BigInt(batch.accepted),
    waiting: BigInt(batch.waiting),
    scheduled: BigInt(batch.scheduled),
    retrying: BigInt(batch.retrying),
    running: BigInt(batch.running),
    completed: BigInt(batch.completed),
    failed: BigInt(failedOf(batch)),
    failures: toFailureCounts(batch.failures),
    removed: BigInt(removedOf(batch)),
    percent: batch.accepted === 0 ? 0 : Math.round((1_000 * ended) / batch.accepted) / 10,
    createdAt: timestampFromDate(batch.createdAt),
    lastPushedAt: timestampFromDate(batch.lastPushedAt),
    secondsLeft: secondsLeft(batch, left),
    lastEndedAt: optionalTimestamp(batch.lastEndedAt),
    closedAt: optionalTimestamp(batch.closedAt),
    completedAt: optionalTimestamp(batch.completedAt),
  };
}

function stateOf({ closedAt, completedAt }: Batch): BatchState {
  if (completedAt !== undefined) return BatchState.COMPLETED;
  return closedAt === undefined ? BatchState.OPEN : BatchState.CLOSED;
}

/** At the mean pace from the first push to the last end. */
function secondsLeft(batch: Batch, left: number): bigint | undefined {
  const { createdAt, lastEndedAt, completed } = batch;
  const crawled = completed + failedOf(batch);
  if (lastEndedAt === undefined || crawled === 0 || left === 0) return undefined;
  const seconds = (lastEndedAt.getTime() - createdAt.getTime()) / 1_000;
  return BigInt(Math.max(0, Math.ceil((seconds * left) / crawled)));
}
