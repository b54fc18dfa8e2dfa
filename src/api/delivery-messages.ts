import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type DeliveryAttemptSchema,
  type DeliverySchema,
  DeliveryState,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { DeliveryAttempt, DeliverySummary } from '../domain/delivery.ts';
import { nameOnWire, optionalTimestamp } from './crawler-messages.ts';

const STATES: Readonly<Record<DeliverySummary['state'], DeliveryState>> = {
  pending: DeliveryState.PENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
};

/** A state from the wire; undefined when the request does not specify one. */
export function toDeliveryState(value: DeliveryState): DeliverySummary['state'] | undefined {
  return nameOnWire(STATES, value);
}

/** A delivery and its attempts on the wire. */
export function toDeliveryMessage(
  summary: DeliverySummary,
): MessageInitShape<typeof DeliverySchema> {
  return {
    ...summary,
    pcStatus: summary.cbStatus,
    sizeBytes: BigInt(summary.size),
    state: STATES[summary.state],
    createdAt: timestampFromDate(summary.createdAt),
    nextAttemptAt: optionalTimestamp(summary.nextAttemptAt),
    attempts: summary.attempts.map(toAttemptMessage),
  };
}

/** One POST on the wire. */
export function toAttemptMessage({
  startedAt,
  ...attempt
}: DeliveryAttempt): MessageInitShape<typeof DeliveryAttemptSchema> {
  return { ...attempt, startedAt: timestampFromDate(startedAt) };
}
