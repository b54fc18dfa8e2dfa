import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { type CrawlerDraft, draftOf, draftTitles } from '../crawlers/crawler-form.tsx';

/** The form keeps exceptions for hosts as they are. */
type DraftField = Exclude<keyof CrawlerDraft, 'hosts'>;

/** A field that its user has changed, and the value that it had before. */
interface Edit {
  readonly mine: CrawlerDraft[DraftField];
  readonly before: CrawlerDraft[DraftField];
}

/** What is not saved yet, by crawler. It outlives its page, so that a look elsewhere loses nothing. */
const edits = signal<ReadonlyMap<string, ReadonlyMap<DraftField, Edit>>>(new Map());

/** A field that somebody else has changed since its user began to. */
interface Overtaken {
  readonly title: string;
  readonly now: string;
  readonly mine: string;
}

/** The settings of a crawler while they are edited. */
interface SettingsEdit {
  /** What others change of untouched fields is in it at once. */
  readonly draft: CrawlerDraft;
  /** The titles of the changed fields. */
  readonly edited: readonly string[];
  readonly overtaken: readonly Overtaken[];
  edit(next: CrawlerDraft): void;
  discard(): void;
}

/** Keeps what its user changes of a crawler's settings; the browser asks before the tab closes. */
export function useSettingsEdit(crawler: Crawler): SettingsEdit {
  const own = edits.value.get(crawler.name) ?? new Map<DraftField, Edit>();
  const current = draftOf(crawler);
  const changed = [...own].filter(([field, { mine }]) => mine !== current[field]);
  const draft = Object.assign(
    { ...current },
    Object.fromEntries(changed.map(([field, { mine }]) => [field, mine])),
  );
  const isDirty = changed.length > 0;
  useEffect(() => {
    if (!isDirty) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isDirty]);
  const keep = (next: ReadonlyMap<DraftField, Edit>): void => {
    edits.value = new Map(edits.peek()).set(crawler.name, next);
  };
  return {
    draft,
    edited: changed.map(([field]) => draftTitles[field]),
    overtaken: changed
      .filter(([field, { before }]) => before !== current[field])
      .map(([field, { mine }]) => ({
        title: draftTitles[field],
        now: shown(current[field]),
        mine: shown(mine),
      })),
    edit(next) {
      const fields = Object.keys(next).filter((field) => field !== 'hosts') as DraftField[];
      const differing = fields.filter((field) => next[field] !== draft[field] || own.has(field));
      keep(
        new Map(
          differing.map((field) => [
            field,
            { mine: next[field], before: own.get(field)?.before ?? current[field] },
          ]),
        ),
      );
    },
    discard: () => keep(new Map()),
  };
}

function shown(value: string | boolean): string {
  if (typeof value === 'string') return value || 'empty';
  return value ? 'on' : 'off';
}
