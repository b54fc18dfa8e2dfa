import { defined } from '../../domain/defined.ts';
import type { ResultDetails } from '../../domain/result.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { FailedCrawl, ReadFailedCrawls } from '../failed-crawls.ts';
import { mapListing } from '../listing-cursor.ts';
import { LISTING_SCAN } from '../listing-store.ts';
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

const RESULT_FIELDS = { ...FIELDS, storedAt: 1, scope: 1, heldUntil: 1, batchId: 1 } as const;

type ResultRow = Pick<ResultDocument, '_id' | keyof typeof RESULT_FIELDS>;
type Row = Pick<ResultDocument, '_id' | keyof typeof FIELDS> &
  Partial<Pick<ResultDocument, 'storedAt'> & Pick<DeliveryDocument, 'createdAt'>>;

/** Creates `ListingStore.failedCrawls`. */
export function createFailedCrawls({ deliveries, results }: Collections): ReadFailedCrawls {
  return async (selection, part) => {
    const { delivers, crawlerId, batchId, range, rids } = selection;
    const field = delivers ? 'createdAt' : 'storedAt';
    const filter = {
      crawlerId,
      cbStatus: { $gt: CB_STATUS.success },
      ...(range === undefined ? {} : { [field]: { $gte: range.from, $lt: range.to } }),
      ...(rids === undefined ? {} : { _id: { $in: [...rids] } }),
    };
    if (delivers) {
      const read = { field, projection: { ...FIELDS, [field]: 1 }, toRow: toFailedCrawl } as const;
      return readPart(deliveries, { ...filter, ...defined({ batchId }) }, part, read);
    }
    // These conditions have no index, and the database would look until it has found enough.
    const scope = scopeKey(selection);
    const isWanted = (row: ResultRow): boolean =>
      row.scope === scope && !row.heldUntil && (batchId === undefined || row.batchId === batchId);
    const listing = await readPart(results, filter, part, {
      field,
      projection: RESULT_FIELDS,
      scan: batchId === undefined ? part.limit : LISTING_SCAN,
      toRow: (row: ResultRow) => row,
      isWanted,
    });
    return mapListing(listing, toFailedCrawl);
  };
}

function toFailedCrawl(row: Row): FailedCrawl {
  const { failure, metadata } = JSON.parse(row.extras) as ResultDetails;
  const { pushedUrl, cbStatus, originalStatus, request } = row;
  return { rid: row._id, pushedUrl, cbStatus, originalStatus, failure, metadata, request };
}
