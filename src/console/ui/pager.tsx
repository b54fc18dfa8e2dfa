import { Button } from './button.tsx';
import type { Pages } from './use-pages.ts';

/** The way to the pages before and after; nothing where there is only one. */
export function Pager({ pages }: { readonly pages: Pick<Pages<unknown>, 'back' | 'next'> }) {
  const { back, next } = pages;
  if (back === undefined && next === undefined) return null;
  return (
    <nav class="card-head" aria-label="Pages">
      <Button small disabled={back === undefined} onClick={() => back?.()}>
        Back
      </Button>
      <Button small disabled={next === undefined} onClick={() => next?.()}>
        More
      </Button>
    </nav>
  );
}
