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
  /** The crawler that is changed; undefined for a new one. */
  readonly before: Crawler | undefined;
}

/** The draft of a new crawler. */
export const emptyDraft: CrawlerDraft = {
  callbackUrl: '',
  values: Object.fromEntries(settingFields.map(({ name, kind }) => [name, emptyValue(kind)])),
  before: undefined,
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
    before: crawler,
  };
}

function emptyValue(kind: SettingField['kind']): string | boolean {
  return kind === 'flag' ? false : '';
}

/** The fields of a draft that say something, under the names of the protocol. */
export function requestOf({ callbackUrl, values, before }: CrawlerDraft, isWebhook: boolean) {
  const given = settingFields.flatMap(({ name, kind, form }) => {
    const value = values[name];
    const isEmpty = value === '' || value === false;
    const isLeftOut =
      (form.webhookOnly && !isWebhook) || (isEmpty && (before === undefined || kind === 'number'));
    return isLeftOut ? [] : [[name, kind === 'number' ? Number(value) : value] as const];
  });
  return {
    ...(isWebhook ? { callbackUrl } : {}),
    ...settingsRequest(Object.fromEntries(given), before),
  };
}

/** The fields for the settings, with help next to each. */
export function SettingFields(props: {
  readonly draft: CrawlerDraft;
  readonly isWebhook: boolean;
  readonly fault: Fault | undefined;
  readonly onChange: (draft: CrawlerDraft) => void;
}) {
  const { draft, isWebhook, fault, onChange } = props;
  const shown = settingFields.filter(({ form }) => isWebhook || !form.webhookOnly);
  const fields = (part: string) =>
    shown
      .filter(({ form }) => form.part === part)
      .map((setting) => (
        <FieldOf
          key={setting.name}
          setting={setting}
          fault={fault}
          value={draft.values[setting.name] ?? ''}
          onInput={(value) =>
            onChange({ ...draft, values: { ...draft.values, [setting.name]: value } })
          }
        />
      ));
  const parts = [...new Set(shown.map(({ form }) => form.part))].filter((part) => part !== '');
  return (
    <>
      {isWebhook && (
        <TextField
          value={draft.callbackUrl}
          onInput={(callbackUrl) => onChange({ ...draft, callbackUrl })}
          fault={fault}
          label="Callback URL"
          name="callback_url"
          type="url"
          required
          placeholder="https://example.com/hook/long-random-text"
          help="Each result is POSTed there, gzip-compressed. It has to answer 200, 201 or 204 quickly; it is probed once a minute."
        />
      )}
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
  readonly onInput: (value: string | boolean) => void;
}) {
  const { value, fault, onInput } = props;
  const { name, kind, form } = props.setting;
  const { label, help, min, max, preset } = form;
  if (kind === 'flag') {
    return <CheckField label={label} help={help} value={value === true} onInput={onInput} />;
  }
  const bounds =
    kind === 'number' ? ({ type: 'number', min, max, placeholder: String(preset) } as const) : {};
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
