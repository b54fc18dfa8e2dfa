import { count } from '../format/numbers.ts';
import { Button } from './button.tsx';
import { PAGE_SIZES, type Pages, pageSize } from './use-pages.ts';

/** The way to the pages before and after; nothing where there is only one. */
export function Pager(props: {
  readonly pages: Pick<Pages<unknown>, 'back' | 'next'> & { readonly isTurning?: boolean };
  /** Which rows are shown of how many, where that is known. */
  readonly shown: string;
}) {
  const { back, next } = props.pages;
  if (back === undefined && next === undefined && !props.pages.isTurning) return null;
  return (
    <nav class="card-head" aria-label="Pages">
      <Button small disabled={back === undefined} onClick={() => back?.()}>
        Back
      </Button>
      <Button small disabled={next === undefined} onClick={() => next?.()}>
        More
      </Button>
      <span class="muted small">{props.shown}</span>
    </nav>
  );
}

/** The same of a list that is read page by page, with how many rows a page has. */
export function ListPager(props: {
  readonly pages: Pages<unknown>;
  /** Rows of all pages, where that is known. */
  readonly total?: number | undefined;
}) {
  const { pages, total } = props;
  const isShort = pageSize.value === PAGE_SIZES[0];
  if (isShort && pages.back === undefined && pages.next === undefined && !pages.isTurning) {
    return null;
  }
  const last = total === undefined ? undefined : Math.ceil(total / Number(pageSize.value));
  const all = last === undefined || last < pages.number ? '' : ` of ${count(last)}`;
  return (
    <div class="row spread">
      <Pager pages={pages} shown={`Page ${count(pages.number)}${all}`} />
      <label class="card-head muted small">
        Rows of a page
        <select
          class="input page-size"
          value={pageSize.value}
          onInput={(event) => {
            pageSize.value = event.currentTarget.value as (typeof PAGE_SIZES)[number];
          }}
        >
          {PAGE_SIZES.map((size) => (
            <option key={size} value={size}>
              {size}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
