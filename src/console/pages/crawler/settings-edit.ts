import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { settingFields } from '../../../client/setting-fields.ts';
import { CALLBACK_TITLE, type CrawlerDraft, draftOf } from '../crawlers/crawler-form.tsx';

/** What is typed, or whether a box is checked. */
type Value = string | boolean;

/** A field that its user has changed, and the value that it had before. */
interface Edit {
  readonly mine: Value;
  readonly before: Value;
}

/** The values of a draft by field. Settings have the names of the protocol, the URL the empty one. */
type Values = Readonly<Record<string, Value>>;

const URL_FIELD = '';
const titles: ReadonlyMap<string, string> = new Map([
  [URL_FIELD, CALLBACK_TITLE],
  ...settingFields.map(({ name, form }) => [name, form.label] as const),
]);
const titleOf = (field: string): string => titles.get(field) ?? field;
const valuesOf = ({ callbackUrl, values }: CrawlerDraft): Values => ({
  ...values,
  [URL_FIELD]: callbackUrl,
});

/** What is not saved yet, by crawler. It outlives its page, so that a look elsewhere loses nothing. */
const edits = signal<ReadonlyMap<string, ReadonlyMap<string, Edit>>>(new Map());

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
  const own = edits.value.get(crawler.name) ?? new Map<string, Edit>();
  const saved = draftOf(crawler);
  const current = valuesOf(saved);
  const changed = [...own].filter(([field, { mine }]) => mine !== current[field]);
  const { [URL_FIELD]: callbackUrl, ...values } = {
    ...current,
    ...Object.fromEntries(changed.map(([field, { mine }]) => [field, mine])),
  };
  const draft = { ...saved, callbackUrl: String(callbackUrl), values };
  const isDirty = changed.length > 0;
  useEffect(() => {
    if (!isDirty) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isDirty]);
  const keep = (next: ReadonlyMap<string, Edit>): void => {
    edits.value = new Map(edits.peek()).set(crawler.name, next);
  };
  return {
    draft,
    edited: changed.map(([field]) => titleOf(field)),
    overtaken: changed
      .filter(([field, { before }]) => before !== current[field])
      .map(([field, { mine }]) => ({
        title: titleOf(field),
        now: shown(current[field] ?? ''),
        mine: shown(mine),
      })),
    edit(next) {
      const shownNow = valuesOf(draft);
      const differing = Object.entries(valuesOf(next)).filter(
        ([field, value]) => value !== shownNow[field] || own.has(field),
      );
      keep(
        new Map(
          differing.map(([field, mine]) => [
            field,
            { mine, before: own.get(field)?.before ?? current[field] ?? '' },
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
