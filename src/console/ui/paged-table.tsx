import type { ComponentChildren } from 'preact';
import { Link } from '../shell/route.tsx';
import { type Column, DataTable } from './data-table.tsx';
import { Empty, FaultNotice, Loading } from './notice.tsx';
import { ListPager } from './pager.tsx';
import type { Pages } from './use-pages.ts';

/** The rows of a list that is read page by page, and the way to its other pages. */
export function PagedTable<Row extends { readonly rid: string }>(props: {
  /** What it lists, for screen readers. */
  readonly label: string;
  readonly pages: Pages<Row>;
  readonly columns: readonly Column<Row>[];
  /** Shown when the first page has no rows. */
  readonly empty: ComponentChildren;
  /** Whether its filter is not understood: then `empty` is shown on any page. Default false. */
  readonly isWrong?: boolean;
  /** Rows of all pages, where that is known. */
  readonly total?: number | undefined;
}) {
  const { label, pages, columns, isWrong = false } = props;
  const { data } = pages;
  return (
    <>
      {pages.isTurning && <FaultNotice fault={pages.fault} />}
      {data === undefined ? (
        <Loading fault={pages.fault} />
      ) : data.rows.length === 0 ? (
        pages.number > 1 && !isWrong ? (
          <Empty title="Nothing is left on this page" />
        ) : (
          props.empty
        )
      ) : (
        <DataTable label={label} rows={data.rows} keyOf={({ rid }) => rid} columns={columns} />
      )}
      <ListPager pages={pages} total={props.total} />
    </>
  );
}

/** The column of the URL in that field, with the `rid` below it. */
export function urlColumn<Field extends string>(
  field: Field,
): Column<{ readonly [Each in Field]?: string | undefined } & { readonly rid: string }> {
  return {
    id: 'url',
    title: 'URL',
    grow: true,
    whole: true,
    cell: (row) => (
      <>
        <span class="clip" title={row[field]}>
          {row[field]}
        </span>
        <Link to={`/jobs/${row.rid}`} class="mono small muted">
          {row.rid}
        </Link>
      </>
    ),
  };
}
