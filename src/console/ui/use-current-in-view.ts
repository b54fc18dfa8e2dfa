import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** Scrolls a row of links sideways to the current one, at first and whenever `current` differs. */
export function useCurrentInView(current: string): RefObject<HTMLElement | null> {
  const row = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const frame = row.current?.getBoundingClientRect();
    const link = row.current?.querySelector('[aria-current]')?.getBoundingClientRect();
    if (row.current === null || frame === undefined || link === undefined) return;
    row.current.scrollLeft += link.left - frame.left - (frame.width - link.width) / 2;
  }, [current]);
  return row;
}
