import type { Command } from 'commander';
import type { Crawler } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  type SettingField,
  type SettingValues,
  settingFields,
  settingsRequest,
} from '../client/setting-fields.ts';
import { wholeNumber } from './command-context.ts';

/** The options of a command that sets settings, as commander reads them. */
export interface SettingOptions {
  readonly callbackUrl?: string;
  readonly [option: string]: unknown;
}

/** Adds an option for each setting; which of them suit a crawler is for the service to say. */
export function addSettings(command: Command): void {
  command.option('--callback-url <url>', 'where results are posted');
  for (const field of settingFields) {
    const flag = flagOf(field);
    const { min, max, help } = field.form;
    const text = `${help.charAt(0).toLowerCase()}${help.slice(1)}`.replace(/\.$/, '');
    if (field.kind === 'number') {
      command.option(`--${flag} <n>`, text, wholeNumber(`--${flag}`, min, max));
    } else if (field.kind === 'text') command.option(`--${flag} <text>`, text);
    else command.option(`--${flag}`, text).option(`--no-${flag}`, `the opposite of --${flag}`);
  }
}

/** The fields of a request that sets what the options name; `before` is the crawler as it is. */
export function settingsFrom(options: SettingOptions, before?: Crawler) {
  const { callbackUrl } = options;
  const values = Object.fromEntries(
    settingFields.map((field) => [field.name, options[optionOf(field)]]),
  ) as SettingValues;
  return {
    ...settingsRequest(values, before),
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
  };
}

function flagOf({ form, path }: SettingField): string {
  const dashed = path.at(-1)?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return form.flag === '' ? String(dashed) : form.flag;
}

/** The name under which commander keeps an option. */
function optionOf(field: SettingField): string {
  return flagOf(field).replaceAll(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase());
}
