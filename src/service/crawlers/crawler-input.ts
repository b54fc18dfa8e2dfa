import { isDeepStrictEqual } from 'node:util';
import type { TokenType } from '../../domain/account.ts';
import { parseCallbackUrl } from '../../domain/callback-url.ts';
import type { Crawler } from '../../domain/crawler.ts';
import {
  type CrawlerSettings,
  type CrawlerSettingsInput,
  checkSettings,
  crawlerSettings,
  type Setting,
  type SettingName,
  settingNames,
} from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { type DeliveryMode, deliveryModes } from '../../domain/delivery-mode.ts';
import { DomainError, invalidField } from '../../domain/errors.ts';
import { fieldName } from '../../domain/field-name.ts';

/** The fields of a create or update call; absent fields take their default, or stay. */
export interface CrawlerInput {
  readonly settings: CrawlerSettingsInput;
  readonly callbackUrl?: string;
  readonly delivery?: DeliveryMode;
  readonly tokenType?: TokenType;
}

/** The same after validation, with the settings and the URL in the form that is stored. */
export interface CheckedCrawlerInput extends Omit<CrawlerInput, 'settings'> {
  readonly settings: Partial<CrawlerSettings>;
}

/** Validates the input. Throws `invalid` naming the field. */
export function checkCrawlerInput(input: CrawlerInput): CheckedCrawlerInput {
  const settings = checkSettings(input.settings);
  const { callbackUrl } = input;
  const url = callbackUrl === undefined ? undefined : parseCallbackUrl(callbackUrl);
  return { ...input, settings, ...defined({ callbackUrl: url }) };
}

/**
 * The delivery mode of a creation: the named one, otherwise webhook with a callback URL and storage
 * without one. Throws `invalid` when the mode and the URL contradict each other.
 */
export function chooseDelivery({
  delivery,
  callbackUrl,
}: Pick<CheckedCrawlerInput, 'delivery' | 'callbackUrl'>): DeliveryMode {
  const mode = delivery ?? (callbackUrl === undefined ? 'storage' : 'webhook');
  const { title, postsToCallback } = deliveryModes[mode];
  if (postsToCallback && callbackUrl === undefined) {
    throw invalidField('callback_url', `${title} delivery needs a callback_url.`);
  }
  if (!postsToCallback && callbackUrl !== undefined) {
    throw invalidField('callback_url', `${title} delivery takes no callback_url.`);
  }
  return mode;
}

/** Throws `failed_precondition` when a field that is fixed at creation would change. */
export function assertFixed(crawler: Crawler, wanted: CheckedCrawlerInput): void {
  const field = (['delivery', 'tokenType'] as const).find(
    (name) => wanted[name] !== undefined && wanted[name] !== crawler[name],
  );
  if (field !== undefined) {
    throw new DomainError(
      'failed_precondition',
      field === 'delivery' ? 'delivery_mode_fixed' : 'token_type_fixed',
      `The ${fieldName(field)} of a crawler is chosen once, at creation; create a new crawler for another one.`,
      { field: fieldName(field) },
    );
  }
  const { title, postsToCallback } = deliveryModes[crawler.delivery];
  if (wanted.callbackUrl !== undefined && !postsToCallback) {
    throw new DomainError(
      'failed_precondition',
      'delivery_mode_fixed',
      `A ${title.toLowerCase()}-mode crawler takes no callback_url; create a crawler with one instead.`,
      { field: 'callback_url' },
    );
  }
}

/** Throws `invalid` for a setting that does nothing in a delivery mode, unless it is off. */
export function assertApplicable(
  mode: DeliveryMode,
  { settings }: Pick<CheckedCrawlerInput, 'settings'>,
): void {
  for (const name of settingNames) {
    const setting: Setting<CrawlerSettings[SettingName]> = crawlerSettings[name];
    if (!(name in settings) || settings[name] === setting.default) continue;
    if (setting.appliesTo?.(mode) !== false) continue;
    const field = fieldName(name);
    throw invalidField(field, `${deliveryModes[mode].title} delivery takes no ${field}.`);
  }
}

/**
 * Accepts a repeated creation when every given field equals the existing value. Throws `conflict`
 * naming the first field that differs.
 */
export function assertSame(crawler: Crawler, given: Partial<Crawler>): void {
  const differs = (Object.keys(given) as (keyof Crawler)[]).find(
    (name) => !isDeepStrictEqual(given[name], crawler[name]),
  );
  if (differs === undefined) return;
  const field = fieldName(differs);
  throw new DomainError(
    'conflict',
    'crawler_exists',
    `A crawler "${crawler.name}" exists with another ${field}.`,
    { field, resource: { type: 'crawler', name: crawler.name } },
  );
}
