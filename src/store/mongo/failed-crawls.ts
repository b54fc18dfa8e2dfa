import type { Filter } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { FailedCrawl, ReadFailedCrawls } from '../failed-crawls.ts';
import { mapListing, partStart, takePart } from '../listing-cursor.ts';
import { parseDetails } from '../stored-details.ts';
import type { Collections, DeliveryDocument, ResultDocument } from './collections.ts';
import { behind, readLight } from './read-part.ts';
import { scopeKey } from './records.ts';

interface Row {
  readonly _id: string;
  readonly createdAt?: Date;
  readonly storedAt?: Date;
  readonly pushedUrl: string;
  readonly cbStatus: number;
  readonly originalStatus: number;
  readonly extras: string;
  readonly request?: string;
}

const FIELDS = {
  createdAt: 1,
  storedAt: 1,
  pushedUrl: 1,
  cbStatus: 1,
  originalStatus: 1,
  extras: 1,
  request: 1,
} as const;

/** Creates `ListingStore.failedCrawls`. */
export function createFailedCrawls({ deliveries, results }: Collections): ReadFailedCrawls {
  return async (selection, part) => {
    const { delivers, crawlerId, batchId, range, rids } = selection;
    const ended = delivers ? 'createdAt' : 'storedAt';
    const conditions: object[] = [
      { crawlerId, cbStatus: { $gt: CB_STATUS.success }, ...defined({ batchId }) },
      delivers ? {} : { scope: scopeKey(selection), heldUntil: null },
      range === undefined ? {} : { [ended]: { $gte: range.from, $lt: range.to } },
      rids === undefined ? {} : { _id: { $in: [...rids] } },
      behind(ended, partStart(part)),
    ];
    const filter = { $and: conditions };
    const cursor = (
      delivers
        ? deliveries.find<Row>(filter as Filter<DeliveryDocument>, { projection: FIELDS })
        : results.find<Row>(filter as Filter<ResultDocument>, { projection: FIELDS })
    )
      .sort({ [ended]: 1, _id: 1 })
      .limit(part.limit);
    const rows = await readLight(cursor);
    const place = (row: Row) => ({ at: row[ended] ?? new Date(0), rid: row._id });
    const limits = { limit: part.limit, scan: part.limit };
    return mapListing(
      takePart(rows, limits, () => true, place),
      toFailedCrawl,
    );
  };
}

function toFailedCrawl(row: Row): FailedCrawl {
  const { failure, metadata } = parseDetails(row.extras);
  const { pushedUrl, cbStatus, originalStatus, request } = row;
  return { rid: row._id, pushedUrl, cbStatus, originalStatus, failure, metadata, request };
}
