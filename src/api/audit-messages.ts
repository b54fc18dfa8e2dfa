import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  AuditActor,
  type AuditRecordSchema,
  type ListAuditRecordsRequest,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { AuditFilter, AuditRecord, AuditActor as DomainActor } from '../domain/audit.ts';
import { defined } from '../domain/defined.ts';
import { nameOnWire } from './crawler-messages.ts';
import { toRange } from './to-date.ts';

const ACTORS: Readonly<Record<DomainActor, AuditActor>> = {
  normal: AuditActor.NORMAL,
  javascript: AuditActor.JAVASCRIPT,
  operator: AuditActor.OPERATOR,
};

/** Which records a request asks for. */
export function toAuditFilter(request: ListAuditRecordsRequest): AuditFilter {
  const { by, method, crawler, from, to } = request;
  return defined({
    by: nameOnWire(ACTORS, by),
    method: method === '' ? undefined : method,
    crawler: crawler === '' ? undefined : crawler,
    ...toRange({ from, to }),
  });
}

/** A record on the wire. */
export function toAuditMessage(record: AuditRecord): MessageInitShape<typeof AuditRecordSchema> {
  const { auditId, at, by, remote, requestId, method, crawler, changes } = record;
  const who = { by: ACTORS[by], remote, requestId };
  return { id: auditId, at: timestampFromDate(at), ...who, method, crawler, changes };
}
