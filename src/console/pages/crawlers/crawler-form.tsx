import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  type SettingField,
  settingFields,
  settingsOf,
  settingsRequest,
} from '../../../client/setting-fields.ts';
import type { Fault } from '../../api/fault.ts';
import { CheckField, TextField } from '../../ui/field.tsx';

/** The settings of a crawler that can change, as they are typed. Empty is the default. */
export interface CrawlerDraft {
  readonly callbackUrl: string;
  /** Typed texts, and whether boxes are checked, by the names of settings. */
  readonly values: Readonly<Record<string, string | boolean>>;
}

/** The draft of a new crawler. */
export const emptyDraft: CrawlerDraft = {
  callbackUrl: '',
  values: Object.fromEntries(settingFields.map(({ name, kind }) => [name, emptyValue(kind)])),
};

/** The draft that says what a crawler has. */
export function draftOf(crawler: Crawler): CrawlerDraft {
  const values = settingsOf(crawler);
  return {
    callbackUrl: crawler.callbackUrl ?? '',
    values: Object.fromEntries(
      settingFields.map(({ name, kind }) => {
        const value = values[name] ?? (kind === 'number' ? 0 : emptyValue(kind));
        return [name, typeof value === 'number' ? String(value) : value];
      }),
    ),
  };
}

function emptyValue(kind: SettingField['kind']): string | boolean {
  return kind === 'flag' ? false : '';
}

/** The settings of a new crawler: the fields of its draft that say something. */
export function requestOf(draft: CrawlerDraft, isWebhook: boolean) {
  return {
    ...(isWebhook ? { callbackUrl: draft.callbackUrl } : {}),
    ...differing(draft, isWebhook),
  };
}

/** The settings that a draft changes of a crawler. */
export function changedSettings(crawler: Crawler, draft: CrawlerDraft, isWebhook: boolean) {
  const movesUrl = isWebhook && draft.callbackUrl !== crawler.callbackUrl;
  return {
    ...(movesUrl ? { callbackUrl: draft.callbackUrl } : {}),
    ...differing(draft, isWebhook, crawler),
  };
}

function differing({ values }: CrawlerDraft, isWebhook: boolean, before?: Crawler) {
  const { values: known } = before === undefined ? emptyDraft : draftOf(before);
  const given = settingFields.flatMap(({ name, kind, form }) => {
    const value = values[name];
    const isLeftOut =
      value === known[name] ||
      (form.webhookOnly && !isWebhook) ||
      (kind === 'number' && value === '');
    return isLeftOut ? [] : [[name, kind === 'number' ? Number(value) : value] as const];
  });
  return settingsRequest(Object.fromEntries(given), before);
}

/** Where results are delivered. */
export function CallbackField(props: {
  readonly draft: CrawlerDraft;
  readonly fault: Fault | undefined;
  readonly required: boolean;
  readonly onChange: (draft: CrawlerDraft) => void;
}) {
  const { draft, fault, required, onChange } = props;
  return (
    <TextField
      value={draft.callbackUrl}
      onInput={(callbackUrl) => onChange({ ...draft, callbackUrl })}
      fault={fault}
      label="Callback URL"
      name="callback_url"
      type="url"
      required={required}
      placeholder="https://example.com/hook/long-random-text"
      help="Each result is POSTed there, gzip-compressed. It has to answer 200, 201 or 204 quickly; it is probed once a minute."
    />
  );
}

/** The fields for the settings, with help next to each. */
export function SettingFields(props: {
  readonly draft: CrawlerDraft;
  readonly isWebhook: boolean;
  readonly fault: Fault | undefined;
  /** Whether a number has to be given; otherwise an empty one has its default. */
  readonly required?: boolean;
  readonly onChange: (draft: CrawlerDraft) => void;
}) {
  const { draft, isWebhook, fault, required = false, onChange } = props;
  const shown = settingFields.filter(({ form }) => isWebhook || !form.webhookOnly);
  const fields = (part: string) =>
    shown
      .filter(({ form }) => form.part === part)
      .map((setting) => (
        <FieldOf
          key={setting.name}
          setting={setting}
          fault={fault}
          required={required}
          value={draft.values[setting.name] ?? ''}
          onInput={(value) =>
            onChange({ ...draft, values: { ...draft.values, [setting.name]: value } })
          }
        />
      ));
  const parts = [...new Set(shown.map(({ form }) => form.part))].filter((part) => part !== '');
  return (
    <>
      <div class="fields">{fields('')}</div>
      {parts.map((part) => (
        <fieldset class="choices" key={part}>
          <legend>{part}</legend>
          {fields(part)}
        </fieldset>
      ))}
    </>
  );
}

function FieldOf(props: {
  readonly setting: SettingField;
  readonly value: string | boolean;
  readonly fault: Fault | undefined;
  readonly required: boolean;
  readonly onInput: (value: string | boolean) => void;
}) {
  const { value, fault, onInput } = props;
  const { name, kind, form } = props.setting;
  const { label, help, min, max, preset } = form;
  if (kind === 'flag') {
    return <CheckField label={label} help={help} value={value === true} onInput={onInput} />;
  }
  const bounds =
    kind === 'number'
      ? ({
          type: 'number',
          min,
          max,
          required: props.required,
          placeholder: String(preset),
        } as const)
      : {};
  return (
    <TextField
      {...bounds}
      label={label}
      help={help}
      name={name}
      value={String(value)}
      onInput={onInput}
      fault={fault}
    />
  );
}
