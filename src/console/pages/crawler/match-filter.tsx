import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { MatchFilterSchema } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { query, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';

/** The conditions of a filter, by their names in the address. */
const FIELDS = {
  url: { label: 'URL contains' },
  host: { label: 'Host', placeholder: 'shop.example' },
  reason: { label: 'Reason of the failure', placeholder: 'timeout' },
  site: { label: 'Status of the site', type: 'number' },
  cb: { label: 'cb_status', type: 'number' },
  batch: { label: 'Batch' },
  from: { label: 'From', type: 'datetime-local' },
  to: { label: 'To', type: 'datetime-local' },
} as const;
type Name = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as Name[];
/** A job in the queue has no status yet. */
const NOT_OF_JOBS: ReadonlySet<Name> = new Set(['site', 'cb']);

/** A filter as an address has it. */
export interface AddressFilter {
  /** Differs when the filter does; empty when it selects all. */
  readonly key: string;
  readonly message: MessageInitShape<typeof MatchFilterSchema>;
}

/** The filter of the present address. */
export const addressFilter = (): AddressFilter => filterOf(query.value);

/** The filter of that query of an address. */
export function filterOf(parameters: URLSearchParams): AddressFilter {
  const of = (name: Name): string => (parameters.get(name) ?? '').trim();
  const number = (name: Name) => (/^\d{1,3}$/.test(of(name)) ? Number(of(name)) : undefined);
  const time = (name: Name) => {
    const date = new Date(of(name));
    return Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
  };
  const [cbStatus, originalStatus] = [number('cb'), number('site')];
  const [from, to] = [time('from'), time('to')];
  return {
    key: NAMES.map((name) => (of(name) === '' ? '' : `${name}=${of(name)}`))
      .filter((each) => each !== '')
      .join(' '),
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
  const { key } = addressFilter();
  const names = NAMES.filter((name) => !(isOfJobs && NOT_OF_JOBS.has(name)));
  return (
    <details class="filter" open={key !== ''}>
      <summary>{key === '' ? 'Filter' : `Filter: ${key}`}</summary>
      <div class="fields">
        {names.map((name) => (
          <TextField
            key={name}
            {...FIELDS[name]}
            value={query.value.get(name) ?? ''}
            onInput={(value) => setQuery(name, value)}
          />
        ))}
      </div>
      {key !== '' && (
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
