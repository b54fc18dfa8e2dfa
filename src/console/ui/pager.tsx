import { Button } from './button.tsx';
import type { Pages } from './use-pages.ts';

/** The way to the pages before and after; nothing where there is only one. */
export function Pager(props: {
  readonly pages: Pick<Pages<unknown>, 'back' | 'next'> & { readonly isTurning?: boolean };
  /** Which rows are shown of how many, where that is known. */
  readonly shown?: string;
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
      {props.shown !== undefined && <span class="muted small">{props.shown}</span>}
    </nav>
  );
}
