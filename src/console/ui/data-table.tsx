import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count } from '../format/numbers.ts';
import { Button } from './button.tsx';

/** One column of a table. */
export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are aligned at the right. */
  readonly number?: boolean;
  /** Takes what width is left, and cuts off what is longer. */
  readonly grow?: boolean;
  /** Takes a line of its own where rows are cards, without a label. */
  readonly whole?: boolean;
  /** Stands at the right of the cell before it where rows are cards. */
  readonly beside?: boolean;
  readonly sortable?: boolean;
  /** Is left out where there is little room. */
  readonly minor?: boolean;
}

/** A column of a whole number. */
export function countColumn<Row>(title: string, pick: (row: Row) => number | bigint): Column<Row> {
  return { id: title, title, number: true, cell: (row) => count(pick(row)) };
}

/** The properties of {@link DataTable}. */
interface DataTableProps<Row> {
  /** What it lists, for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly sort?: { readonly by: string; readonly descending: boolean };
  readonly onSort?: (by: string) => void;
}

/** Rows and columns; on a telephone each row is a small card. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { columns, sort, onSort } = props;
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    // What scrolls has to scroll by the keyboard as well.
    const resized = new ResizeObserver(() => {
      if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
      else element.removeAttribute('tabindex');
    });
    resized.observe(element);
    for (const child of element.children) resized.observe(child);
    return () => resized.disconnect();
  }, []);
  return (
    <div class="table-scroll" ref={frame}>
      {sort !== undefined && onSort !== undefined && (
        <CardOrder columns={columns} sort={sort} onSort={onSort} />
      )}
      <table class="rows-as-cards" aria-label={props.label}>
        <thead>
          <tr>
            {columns.map(({ id, title, number, sortable, minor }) => (
              <th
                key={id}
                scope="col"
                class={[number && 'number', minor && 'minor'].filter(Boolean).join(' ')}
                aria-sort={sort?.by === id ? direction(sort.descending) : undefined}
              >
                {sortable && onSort !== undefined ? (
                  <button type="button" onClick={() => onSort(id)}>
                    {title}
                    <span aria-hidden="true">{arrow(sort, id)}</span>
                  </button>
                ) : title === '' ? (
                  <span class="visually-hidden">Actions</span>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)}>
              {columns.map(({ id, title, cell, number, grow, whole, beside, minor }) => (
                <td
                  key={id}
                  class={[
                    number && 'number',
                    grow && 'grow',
                    whole && 'whole',
                    beside && 'beside',
                    minor && 'minor',
                  ]
                    .filter(Boolean)
                    .join(' ')}
                  data-label={whole || title === '' ? undefined : title}
                >
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The order of the rows, where they are cards and so have no heads. */
function CardOrder<Row>(props: {
  readonly columns: readonly Column<Row>[];
  readonly sort: { readonly by: string; readonly descending: boolean };
  readonly onSort: (by: string) => void;
}) {
  const { sort, onSort } = props;
  return (
    <div class="card-order">
      <select
        class="input"
        aria-label="Sort by"
        value={sort.by}
        onChange={(event) => onSort(event.currentTarget.value)}
      >
        {props.columns
          .filter(({ sortable }) => sortable)
          .map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
      </select>
      <Button small onClick={() => onSort(sort.by)}>
        {sort.descending ? 'Highest first' : 'Lowest first'}
      </Button>
    </div>
  );
}

function direction(descending: boolean): 'ascending' | 'descending' {
  return descending ? 'descending' : 'ascending';
}

function arrow(sort: DataTableProps<unknown>['sort'], id: string): string {
  if (sort?.by !== id) return '';
  return sort.descending ? ' ↓' : ' ↑';
}
