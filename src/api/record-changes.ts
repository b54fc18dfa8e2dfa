import { type DescMessage, type DescMethod, type Message, toJson } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { BatchService } from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../gen/queuedcrawler/v1/host_service_pb.ts';
import { ProxyService } from '../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import type { AuditTrail, Change } from '../service/accounts/audit-trail.ts';
import type { Call, Method } from './method.ts';

/** Services whose changes are recorded. Pushes and reads of results are work, and are counted. */
const RECORDED: ReadonlySet<unknown> = new Set([
  AccountService,
  BatchService,
  CrawlerService,
  HostService,
  ProxyService,
]);

/** Fields that say nothing of the change, or are secret. */
const LEFT_OUT: ReadonlySet<string> = new Set(['token', 'name', 'etag', 'page_token']);
/** The name in these calls is that of a pool, not of a crawler. */
const OF_POOLS: ReadonlySet<DescMessage> = new Set(ProxyService.methods.map(({ input }) => input));

/** The longest text of changes. Longer ones are told by the names of their fields. */
const MAX_CHANGES = 1_000;

/** Wraps methods so that each call which changed something is noted. */
export function withRecords(methods: readonly Method[], trail: Pick<AuditTrail, 'note'>): Method[] {
  return methods.map((method): Method => {
    const { desc } = method;
    const isRead = desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    if (method.kind !== 'unary' || isRead || !RECORDED.has(desc.parent)) return method;
    return {
      ...method,
      async handle(request: Message, call: Call) {
        const reply = await method.handle(request, call);
        // A creation that found the same crawler.
        if ('created' in reply && reply.created === false) return reply;
        noteChange(trail, desc, request, call);
        return reply;
      },
    };
  });
}

/** Notes a call that changed something. `outcome` is noted as fields of the call are. */
export function noteChange(
  trail: Pick<AuditTrail, 'note'>,
  { name, input }: DescMethod,
  request: Message,
  call: Call,
  outcome: Readonly<Record<string, number>> = {},
): void {
  const subject = 'name' in request && !OF_POOLS.has(input) ? String(request.name) : '';
  const change = changeOf(name, subject, changesText(request, input, outcome), call);
  if (change !== undefined) trail.note(change);
}

function changeOf(
  method: string,
  name: string,
  changes: string,
  { caller, isOperator, remote, requestId = '', countsAs }: Call,
): Change | undefined {
  const made = { method, remote, requestId, changes };
  if (isOperator === true) return { ...made, by: 'operator', account: { name }, crawler: '' };
  if (caller === undefined) return undefined;
  const { account, tokenType } = caller.owner;
  const { accountId } = account;
  return { ...made, by: countsAs ?? tokenType, account: { accountId }, crawler: name };
}

function changesText(
  request: Message,
  desc: DescMessage,
  outcome: Readonly<Record<string, number>>,
): string {
  const all = toJson(desc, request, { useProtoFieldName: true }) as Record<string, unknown>;
  const pool = OF_POOLS.has(desc) ? { pool: all['name'] } : {};
  const given = Object.entries({ ...pool, ...all, ...outcome });
  const fields = given.filter(([name]) => !LEFT_OUT.has(name));
  const text = JSON.stringify(Object.fromEntries(fields), (_name, value: unknown) =>
    typeof value === 'string' ? withoutSecrets(value) : value,
  );
  if (text.length <= MAX_CHANGES) return text;
  return JSON.stringify({ fields: fields.map(([name]) => name) }).slice(0, MAX_CHANGES);
}

/** Of a URL, the path and the query may be secret as well, and the user and password of a proxy. */
function withoutSecrets(text: string): string {
  const url = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? URL.parse(text) : null;
  return url === null ? text : `${url.protocol}//${url.host}/…`;
}
