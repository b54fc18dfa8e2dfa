import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type Feed, useFeed } from '../api/use-feed.ts';
import { query, setQuery } from '../shell/route.tsx';

/** One page of a list. */
export interface ListPage<Row> {
  readonly rows: readonly Row[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

/** A list that is read page by page. */
export interface Pages<Row> extends Feed<ListPage<Row>> {
  /** Undefined on the first page. */
  readonly back: (() => void) | undefined;
  /** Undefined on the last page. */
  readonly next: (() => void) | undefined;
  /** Whether another page is being read; `data` is that before. */
  readonly isTurning: boolean;
}

/**
 * Reads a list page by page; the page that is shown is read again every few seconds, and at once
 * when `changes` do. The page is a parameter of the address; lists on one page need different ones.
 */
export function usePages<Row>(
  key: string,
  read: (pageToken: string, signal: AbortSignal) => Promise<ListPage<Row>>,
  changes?: string,
  parameter = 'page',
): Pages<Row> {
  /** The pages before the shown one, as far as this page of the console has gone through them. */
  const trail = useSignal<readonly string[]>([]);
  const lastKey = useRef(key);
  const isOther = lastKey.current !== key;
  const pageToken = isOther ? '' : (query.value.get(parameter) ?? '');
  useEffect(() => {
    lastKey.current = key;
    if (!isOther) return;
    trail.value = [];
    setQuery(parameter, '');
  }, [key]);
  const feed = useFeed({
    key: `${key} ${pageToken}`,
    everyMs: 4_000,
    changes,
    poll: (signal) => read(pageToken, signal),
  });
  const shown = useRef<{ readonly key: string; readonly page: ListPage<Row> } | undefined>(
    undefined,
  );
  if (feed.data !== undefined) shown.current = { key, page: feed.data };
  const isTurning = feed.data === undefined && shown.current?.key === key;
  const next = feed.data?.nextPageToken ?? '';
  const go = (token: string, before: readonly string[]) => () => {
    trail.value = before;
    setQuery(parameter, token);
  };
  return {
    ...feed,
    data: isTurning ? shown.current?.page : feed.data,
    isTurning,
    // By a link there is no way back but to the first page.
    back: pageToken === '' ? undefined : go(trail.value.at(-1) ?? '', trail.value.slice(0, -1)),
    next: next === '' ? undefined : go(next, [...trail.value, pageToken]),
  };
}
