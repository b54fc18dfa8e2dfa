import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type Feed, useFeed } from '../api/use-feed.ts';
import { query, queryField, setQuery } from '../shell/route.tsx';

/** Rows that a page may have, the default first. */
export const PAGE_SIZES = ['50', '100', '200'] as const;

/** The chosen one, for all lists that are read page by page. */
export const pageSize = queryField('rows', PAGE_SIZES, '50');

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
  /** Of the page, from 1. */
  readonly number: number;
}

/**
 * Reads a list page by page; the page that is shown is read again every few seconds, and at once
 * when `changes` do. The page is a parameter of the address, its number before its token; lists on one
 * page need different ones.
 */
export function usePages<Row>(
  list: string,
  read: (pageToken: string, pageSize: number, signal: AbortSignal) => Promise<ListPage<Row>>,
  changes?: string,
  parameter = 'page',
): Pages<Row> {
  const size = pageSize.value;
  const key = `${list} ${size}`;
  /** The pages before the shown one, as far as this page of the console has gone through them. */
  const trail = useSignal<readonly string[]>([]);
  const lastKey = useRef(key);
  const isOther = lastKey.current !== key;
  const place = isOther ? '' : (query.value.get(parameter) ?? '');
  const [, digits = '1', pageToken = ''] = /^(\d{1,6})~(.*)$/.exec(place) ?? [];
  const number = Number(digits);
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
    poll: (signal) => read(pageToken, Number(size), signal),
  });
  const shown = useRef<{ readonly key: string; readonly page: ListPage<Row> } | undefined>(
    undefined,
  );
  if (feed.data !== undefined) shown.current = { key, page: feed.data };
  const isTurning = feed.data === undefined && shown.current?.key === key;
  const next = feed.data?.nextPageToken ?? '';
  const go = (token: string, of: number, before: readonly string[]) => () => {
    trail.value = before;
    setQuery(parameter, token === '' ? '' : `${of}~${token}`);
  };
  return {
    ...feed,
    data: isTurning ? shown.current?.page : feed.data,
    isTurning,
    // By a link there is no way back but to the first page.
    back:
      pageToken === ''
        ? undefined
        : go(trail.value.at(-1) ?? '', number - 1, trail.value.slice(0, -1)),
    next: next === '' ? undefined : go(next, number + 1, [...trail.value, pageToken]),
    number,
  };
}
