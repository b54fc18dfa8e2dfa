import { toJson } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  AuditActor,
  type AuditRecord,
  AuditRecordSchema,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { accountClients } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { Moment } from '../../format/moment.tsx';
import { Link, query, queryField, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import type { Column } from '../../ui/data-table.tsx';
import { download } from '../../ui/download.ts';
import { SelectField, TextField } from '../../ui/field.tsx';
import { Empty, FaultNotice } from '../../ui/notice.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { toCsv, toNdjson } from '../../ui/row-file.ts';
import { Segments } from '../../ui/segments.tsx';
import { usePages } from '../../ui/use-pages.ts';
import { RECORDED_METHODS } from './recorded-methods.ts';

const ACTORS = {
  '': AuditActor.UNSPECIFIED,
  normal: AuditActor.NORMAL,
  javascript: AuditActor.JAVASCRIPT,
  operator: AuditActor.OPERATOR,
} as const;
type Actor = keyof typeof ACTORS;

const NAMES: readonly (readonly [Actor, string])[] = [
  ['', 'Anybody'],
  ['normal', 'Normal token'],
  ['javascript', 'JavaScript token'],
  ['operator', 'Operator'],
];

const METHODS = [
  ['', 'Any change'] as const,
  ...RECORDED_METHODS.map((name) => [name, name] as const),
];

const READ_AT_ONCE = 200;

type Row = AuditRecord & { readonly rid: string };

const columns: readonly Column<Row>[] = [
  { id: 'at', title: 'When', cell: ({ at }) => <Moment at={at} /> },
  {
    id: 'by',
    title: 'Who',
    cell: ({ by, remote }) => (
      <>
        <span class="nowrap">{NAMES.find(([actor]) => ACTORS[actor] === by)?.[1]}</span>
        <div class="muted small">{remote}</div>
      </>
    ),
  },
  { id: 'method', title: 'What', cell: ({ method }) => method },
  {
    id: 'crawler',
    title: 'Crawler',
    cell: ({ crawler }) =>
      crawler === '' ? (
        <span class="muted">–</span>
      ) : (
        <Link to={`/crawlers/${crawler}`}>{crawler}</Link>
      ),
  },
  {
    id: 'changes',
    title: 'Fields',
    grow: true,
    whole: true,
    cell: ({ changes }) => <code title={changes}>{changes}</code>,
  },
];

/** Who changed what in the account, by who, what, crawler and time, with an export of all that is shown. */
export function AuditCard() {
  const { activity } = accountClients();
  const by = queryField(
    'by',
    NAMES.map(([actor]) => actor),
    '',
  );
  const crawler = query.value.get('crawler') ?? '';
  const method = query.value.get('method') ?? '';
  const [from, to] = (['from', 'to'] as const).map((name) => query.value.get(name) ?? '');
  const filter = {
    by: ACTORS[by.value],
    crawler: crawler.trim(),
    method,
    ...(timeOf(from) && { from: timeOf(from) }),
    ...(timeOf(to) && { to: timeOf(to) }),
  };
  const read = (pageSize: number, pageToken: string, signal?: AbortSignal) =>
    activity.listAuditRecords({ ...filter, pageSize, pageToken }, signal && { signal });
  const pages = usePages<Row>(
    `audit ${[by.value, filter.crawler, method, from, to].join()}`,
    async (token, pageSize, signal) => {
      const { records, nextPageToken } = await read(pageSize, token, signal);
      return { rows: records.map((each) => ({ ...each, rid: each.id })), nextPageToken };
    },
  );
  const save = useAction(async (format: 'csv' | 'ndjson') => {
    const all: AuditRecord[] = [];
    let token = '';
    do {
      const { records, nextPageToken } = await read(READ_AT_ONCE, token);
      all.push(...records);
      token = nextPageToken;
    } while (token !== '');
    const rows = all.map(plain);
    download(`audit.${format}`, format === 'csv' ? toCsv(rows, FIELDS) : toNdjson(rows));
  });
  return (
    <Card
      title="Changes"
      flush
      actions={
        <div class="row">
          <Segments
            label="Changed by"
            value={by.value}
            options={NAMES}
            onPick={(picked) => {
              by.value = picked;
            }}
          />
          <Button small busy={save.busy} onClick={() => void save.run('csv')}>
            CSV
          </Button>
          <Button small busy={save.busy} onClick={() => void save.run('ndjson')}>
            NDJSON
          </Button>
        </div>
      }
    >
      <div class="card-part">
        <div class="fields">
          <TextField
            label="Changes of crawler"
            value={crawler}
            onInput={(typed) => setQuery('crawler', typed)}
          />
          <SelectField
            label="What was changed"
            value={method}
            options={METHODS}
            onInput={(picked) => setQuery('method', picked)}
          />
          {(['from', 'to'] as const).map((name) => (
            <TextField
              key={name}
              label={name === 'from' ? 'Changes from' : 'Changes before'}
              type="datetime-local"
              value={(name === 'from' ? from : to) ?? ''}
              onInput={(typed) => setQuery(name, typed)}
            />
          ))}
        </div>
      </div>
      <FaultNotice fault={save.fault} />
      <PagedTable
        label="Changes"
        pages={pages}
        columns={columns}
        empty={<Empty title="No changes like that in the last 90 days" />}
      />
    </Card>
  );
}

/** A moment that was typed, in local time; undefined without one. */
function timeOf(typed: string | undefined): Timestamp | undefined {
  const date = new Date(typed ?? '');
  return Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
}

const FIELDS = ['at', 'by', 'method', 'crawler', 'remote', 'request_id', 'changes'] as const;

function plain(record: AuditRecord): Record<string, string> {
  const json = toJson(AuditRecordSchema, record, { useProtoFieldName: true });
  const by = Object.entries(ACTORS).find(([, value]) => value === record.by)?.[0] ?? '';
  const at = record.at === undefined ? '' : timestampDate(record.at).toISOString();
  return { ...(json as Record<string, string>), by, at };
}
