import { defined } from '../../domain/defined.ts';
import type { ResultDetails } from '../../domain/result.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { FailedCrawl, ReadFailedCrawls } from '../failed-crawls.ts';
import type { Collections, DeliveryDocument, ResultDocument } from './collections.ts';
import { readPart } from './read-part.ts';
import { scopeKey } from './records.ts';

const FIELDS = {
  pushedUrl: 1,
  cbStatus: 1,
  originalStatus: 1,
  extras: 1,
  request: 1,
} as const;

type Row = Pick<ResultDocument, '_id' | keyof typeof FIELDS> &
  Partial<Pick<ResultDocument, 'storedAt'> & Pick<DeliveryDocument, 'createdAt'>>;

/** Creates `ListingStore.failedCrawls`. */
export function createFailedCrawls({ deliveries, results }: Collections): ReadFailedCrawls {
  return (selection, part) => {
    const { delivers, crawlerId, batchId, range, rids } = selection;
    const field = delivers ? 'createdAt' : 'storedAt';
    const filter = {
      crawlerId,
      cbStatus: { $gt: CB_STATUS.success },
      ...defined({ batchId }),
      ...(delivers ? {} : { scope: scopeKey(selection), heldUntil: null }),
      ...(range === undefined ? {} : { [field]: { $gte: range.from, $lt: range.to } }),
      ...(rids === undefined ? {} : { _id: { $in: [...rids] } }),
    };
    const projection = { ...FIELDS, [field]: 1 };
    const read = { field, projection, toRow: toFailedCrawl } as const;
    return delivers
      ? readPart(deliveries, filter, part, read)
      : readPart(results, filter, part, read);
  };
}

function toFailedCrawl(row: Row): FailedCrawl {
  const { failure, metadata } = JSON.parse(row.extras) as ResultDetails;
  const { pushedUrl, cbStatus, originalStatus, request } = row;
  return { rid: row._id, pushedUrl, cbStatus, originalStatus, failure, metadata, request };
}
