import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { settingFields } from '../../../client/setting-fields.ts';
import { onOtherAccount } from '../../api/session.ts';
import { type CrawlerDraft, draftOf } from '../crawlers/crawler-form.tsx';

type Value = string | boolean;

/** A field that its user has changed, and the value that it had before. */
interface Edit {
  readonly mine: Value;
  readonly before: Value;
}

/** What is not saved yet, by crawler and field. It outlives its page, so that a look elsewhere loses nothing. */
const edits = signal<ReadonlyMap<string, ReadonlyMap<string, Edit>>>(new Map());

onOtherAccount(() => {
  edits.value = new Map();
});

/** Forgets what is not saved of a crawler, which is deleted. */
export function forgetEdits(crawler: string): void {
  const others = new Map(edits.peek());
  others.delete(crawler);
  edits.value = others;
}

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
  const current = valuesOf(draftOf(crawler));
  const changed = [...own].filter(([field, { mine }]) => mine !== current[field]);
  const values = {
    ...current,
    ...Object.fromEntries(changed.map(([name, { mine }]) => [name, mine])),
  };
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
    draft: { callbackUrl: String(values[CALLBACK]), values },
    edited: changed.map(([field]) => titleOf(field)),
    overtaken: changed
      .filter(([field, { before }]) => before !== current[field])
      .map(([field, { mine }]) => ({
        title: titleOf(field),
        now: shown(current[field]),
        mine: shown(mine),
      })),
    edit(next) {
      const typed = Object.entries(valuesOf(next)).filter(
        ([field, value]) => value !== values[field] || own.has(field),
      );
      keep(
        new Map(
          typed.map(([field, mine]) => [
            field,
            { mine, before: own.get(field)?.before ?? current[field] ?? '' },
          ]),
        ),
      );
    },
    discard: () => keep(new Map()),
  };
}

const CALLBACK = 'callback_url';

function valuesOf({ callbackUrl, values }: CrawlerDraft): Readonly<Record<string, Value>> {
  return { ...values, [CALLBACK]: callbackUrl };
}

function titleOf(field: string): string {
  if (field === CALLBACK) return 'Callback URL';
  return settingFields.find(({ name }) => name === field)?.form.label ?? field;
}

function shown(value: Value | undefined): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return value || 'empty';
}
