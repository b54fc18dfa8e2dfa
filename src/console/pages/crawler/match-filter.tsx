import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { MatchFilterSchema } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { Fault } from '../../api/fault.ts';
import { query, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Empty } from '../../ui/notice.tsx';

/** The conditions of a filter, by their names in the address. */
const FIELDS = {
  url: { label: 'URL contains' },
  host: { label: 'Host', placeholder: 'shop.example' },
  reason: { label: 'Reason of the failure', placeholder: 'timeout' },
  // As text: of what is no number, a field for numbers gives nothing, which would select everything.
  site: { label: 'Status of the site', placeholder: '404' },
  cb: { label: 'cb_status', placeholder: '520' },
  batch: { label: 'Batch' },
  from: { label: 'From', type: 'datetime-local', max: '9999-12-31T23:59' },
  to: { label: 'To', type: 'datetime-local', max: '9999-12-31T23:59' },
} as const;
type Name = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as Name[];
/** A job in the queue has no status yet. */
const NOT_OF_JOBS: ReadonlySet<Name> = new Set(['site', 'cb']);

/** A filter as an address has it, each condition of which is understood. */
export interface MatchFilter {
  /** Differs when the filter does; empty when it selects all. */
  readonly key: string;
  readonly message: MessageInitShape<typeof MatchFilterSchema>;
  readonly fault?: undefined;
}

/** A filter that selects nothing, because a condition is not understood. */
interface WrongFilter {
  readonly key: string;
  /** Its `field` is the name of the condition in the address. */
  readonly fault: Fault;
}

/** A filter as an address has it. */
export type AddressFilter = MatchFilter | WrongFilter;

/** The page of a list whose filter is not understood. */
export const NO_ROWS = { rows: [], nextPageToken: '' } as const;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/;

/** The filter of the present address. */
export const addressFilter = (): AddressFilter => filterOf(query.value);

/** The filter of that query of an address. */
export function filterOf(parameters: URLSearchParams): AddressFilter {
  const of = (name: Name): string => (parameters.get(name) ?? '').trim();
  const key = NAMES.map((name) => (of(name) === '' ? '' : `${name}=${of(name)}`))
    .filter((each) => each !== '')
    .join(' ');
  let fault: Fault | undefined;
  const wrong = (name: Name, expected: string): undefined => {
    if (of(name) === '') return undefined;
    const text = `${FIELDS[name].label}: “${of(name)}” is not ${expected}.`;
    const code = Code.InvalidArgument;
    fault ??= { code, reason: 'invalid_value', field: name, text, advice: '', isTransient: false };
    return undefined;
  };
  const number = (name: Name) =>
    /^\d{1,3}$/.test(of(name)) ? Number(of(name)) : wrong(name, 'a number of at most three digits');
  const time = (name: Name) => {
    const date = new Date(of(name));
    // V8 takes 31 February for a day of March.
    return TIME.test(of(name)) && date.getDate() === Number(of(name).slice(8, 10))
      ? timestampFromDate(date)
      : wrong(name, 'a time such as 2026-01-31T09:30');
  };
  const [cbStatus, originalStatus] = [number('cb'), number('site')];
  const [from, to] = [time('from'), time('to')];
  if (fault !== undefined) return { key, fault };
  return {
    key,
    message: {
      urlContains: of('url'),
      host: of('host'),
      reason: of('reason'),
      batch: of('batch'),
      ...(cbStatus === undefined ? {} : { cbStatus }),
      ...(originalStatus === undefined ? {} : { originalStatus }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    },
  };
}

/** A moment as a field of local time has it. */
export function localInput(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The conditions of the list below it. They are in the address, so that a colleague can open it. */
export function FilterBar({ isOfJobs = false }: { readonly isOfJobs?: boolean }) {
  const { key, fault } = addressFilter();
  const isSet = key !== '';
  // A filter opens the bar. Without one it stays open, as its last field may be edited.
  const isOpen = useSignal(isSet);
  useEffect(() => {
    if (isSet) isOpen.value = true;
  }, [isSet]);
  const names = NAMES.filter(
    (name) => !(isOfJobs && NOT_OF_JOBS.has(name)) || fault?.field === name,
  );
  return (
    <details
      class="filter"
      open={isOpen.value}
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>{isSet ? `Filter: ${key}` : 'Filter'}</summary>
      <div class="fields">
        {names.map((name) => (
          <TextField
            key={name}
            name={name}
            fault={fault}
            {...FIELDS[name]}
            value={query.value.get(name) ?? ''}
            onInput={(value) => setQuery(name, value)}
          />
        ))}
      </div>
      {isSet && (
        <Button
          small
          onClick={() => {
            for (const name of NAMES) setQuery(name, '');
          }}
        >
          Clear the filter
        </Button>
      )}
    </details>
  );
}

/** What a list says without rows while a filter is set. */
export function NoMatches({ filter: { fault } }: { readonly filter: AddressFilter }) {
  if (fault === undefined) return <Empty title="Nothing matches the filter" />;
  return (
    <Empty title="Nothing is selected">
      <p>{fault.text}</p>
    </Empty>
  );
}
