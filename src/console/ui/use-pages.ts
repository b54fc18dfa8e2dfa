import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { type Feed, useFeed } from '../api/use-feed.ts';

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
 * when `changes` do.
 */
export function usePages<Row>(
  key: string,
  read: (pageToken: string, signal: AbortSignal) => Promise<ListPage<Row>>,
  changes?: string,
): Pages<Row> {
  const trail = useSignal<{ readonly key: string; readonly tokens: readonly string[] }>({
    key,
    tokens: [],
  });
  const tokens = trail.value.key === key ? trail.value.tokens : [];
  const pageToken = tokens.at(-1) ?? '';
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
  const go = (to: readonly string[]) => () => {
    trail.value = { key, tokens: to };
  };
  return {
    ...feed,
    data: isTurning ? shown.current?.page : feed.data,
    isTurning,
    back: tokens.length === 0 ? undefined : go(tokens.slice(0, -1)),
    next: next === '' ? undefined : go([...tokens, next]),
  };
}
