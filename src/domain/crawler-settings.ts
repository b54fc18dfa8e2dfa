import { type DeliveryMode, deliveryModes } from './delivery-mode.ts';
import { invalidField } from './errors.ts';
import { fieldName } from './field-name.ts';
import { checkHostRules, type HostRule, POLITENESS_BOUNDS } from './host-rules.ts';
import { integerInRange, MAX_UNIQUE_SECONDS } from './limits.ts';
import { checkRungs } from './rungs.ts';

/** How considerate a crawler is to each host; all zero, false and without exceptions is off. */
export interface Politeness {
  /** Most requests at one host at once, 0 for no limit. */
  readonly maxPerHost: number;
  /** Least time between the starts of two requests at one host. */
  readonly delayMs: number;
  readonly robotsTxt: boolean;
  /** Exceptions, the first that matches a host; absent for none. */
  readonly hosts?: readonly HostRule[];
  /** Crawlers of the account with the same one ask a host together no more than one of them may. */
  readonly group?: string;
}

/** How many results one POST delivers. */
export interface DeliverBatch {
  /** 2 to {@link DELIVER_BATCH_BOUNDS}. */
  readonly maxResults: number;
  /** How long a result waits for others. */
  readonly maxMs: number;
}

/** Most results of a POST, and the longest wait. */
const DELIVER_BATCH_BOUNDS = { maxResults: 100, maxMs: 10_000 } as const;

/** One setting that a crawler's owner chooses. `undefined` as a value stands for "off". */
export interface Setting<Value> {
  /** Applies when a creation does not name the setting and the operator has set no other default. */
  readonly default: Value;
  /** Returns the value as it is kept. Throws `invalid` naming `field`, the field of the request. */
  check(field: string, value: NonNullable<Value>): Value;
  /** Whether the setting means something in a delivery mode; in every mode when absent. */
  readonly appliesTo?: (mode: DeliveryMode) => boolean;
}

interface IntegerSetting extends Setting<number> {
  readonly min: number;
  readonly max: number;
}

function integer(range: Pick<IntegerSetting, 'min' | 'max' | 'default'>): IntegerSetting {
  return { ...range, check: (field, value) => integerInRange(field, value, range.min, range.max) };
}

const NAME = /^[\w.-]{1,64}$/;

const politeness: Setting<Politeness | undefined> = {
  default: undefined,
  check(field, { maxPerHost, delayMs, robotsTxt, hosts = [], group = '' }) {
    integerInRange(`${field}.max_per_host`, maxPerHost, 0, POLITENESS_BOUNDS.maxPerHost);
    integerInRange(`${field}.delay_ms`, delayMs, 0, POLITENESS_BOUNDS.delayMs);
    const rules = checkHostRules(`${field}.hosts`, hosts);
    if (group !== '' && !NAME.test(group)) {
      const name = `${field}.group`;
      throw invalidField(
        name,
        `${name} takes 1 to 64 letters, digits, dots, hyphens and underscores.`,
      );
    }
    const isOff = maxPerHost === 0 && delayMs === 0 && !robotsTxt && rules.length === 0;
    if (isOff) return undefined;
    return {
      maxPerHost,
      delayMs,
      robotsTxt,
      ...(rules.length === 0 ? {} : { hosts: rules }),
      ...(group === '' ? {} : { group }),
    };
  },
};

const deliverBatch: Setting<DeliverBatch | undefined> = {
  default: undefined,
  check(field, { maxResults, maxMs }) {
    integerInRange(`${field}.max_results`, maxResults, 0, DELIVER_BATCH_BOUNDS.maxResults);
    integerInRange(`${field}.max_ms`, maxMs, 0, DELIVER_BATCH_BOUNDS.maxMs);
    return maxResults < 2 ? undefined : { maxResults, maxMs };
  },
  appliesTo: (mode) => deliveryModes[mode].delivers,
};

const unique: Setting<boolean | undefined> = {
  default: undefined,
  check: (_field, value) => value || undefined,
};

const proxy: Setting<string | undefined> = {
  default: undefined,
  check(field, value) {
    if (value === '') return undefined;
    if (NAME.test(value)) return value;
    throw invalidField(field, `${field} must be the name of a pool of proxies.`);
  },
};

const escalate: Setting<string | undefined> = {
  default: undefined,
  check(field, value) {
    if (value.trim() === '') return undefined;
    return checkRungs(field, value)
      .map(({ name }) => name)
      .join(',');
  },
};

const uniqueFor: Setting<number | undefined> = {
  default: undefined,
  check: (field, value) => integerInRange(field, value, 0, MAX_UNIQUE_SECONDS) || undefined,
};

/**
 * Every setting of a crawler, under the name it has in the protocol's messages. Validation,
 * defaults, the comparison of a repeated creation, the conversion to and from messages, and both
 * stores follow from this table. A value must survive JSON.
 */
export const crawlerSettings = {
  /** Most URLs crawled at once. */
  concurrency: integer({ min: 1, max: 1_000, default: 20 }),
  /** Most deliveries in flight at its callback URL, 0 for as many as the endpoint takes. */
  deliveryConcurrency: {
    ...integer({ min: 0, max: 1_000, default: 0 }),
    appliesTo: (mode: DeliveryMode) => deliveryModes[mode].delivers,
  },
  /** Several results by one POST; each by a POST of its own if absent. */
  deliverBatch,
  /** Most retries of a crawl that fails for a transient reason. */
  maxRetries: integer({ min: 0, max: 1_000, default: 110 }),
  /** Hours from the first try in which retries are made. */
  retryWindowHours: integer({ min: 1, max: 336, default: 48 }),
  politeness,
  /** The pool of proxies that it crawls through; none if absent. */
  proxy,
  /** The rungs that URLs climb where a host blocks them, see `rungs.ts`; none if absent. */
  escalate,
  /** Megabytes through proxies in a day (UTC), after which URLs that need one wait; 0 for no limit. */
  maxProxyMegabytesADay: integer({ min: 0, max: 1_000_000_000, default: 0 }),
  /** Whether all hosts of a registrable domain count as one host. Applies to URLs pushed from then on. */
  groupByDomain: { default: false, check: (_field: string, value: boolean) => value },
  /** Whether pushes are unique unless they say otherwise. */
  unique,
  /** Seconds for which the key of a unique push holds; while its URL waits or is crawled if absent. */
  uniqueFor,
  /** Minutes for which it needs attention before its owner gets an e-mail, 0 for none. */
  notifyAfterMinutes: integer({ min: 0, max: 10_080, default: 0 }),
  /** Whether its owner gets an e-mail when a batch is complete. */
  notifyBatches: { default: false, check: (_field: string, value: boolean) => value },
} satisfies Record<string, Setting<unknown>>;

type Settings = typeof crawlerSettings;
export type SettingName = keyof Settings;

/** The settings of a crawler; their meanings are in {@link crawlerSettings}. */
export type CrawlerSettings = { readonly [Name in keyof Settings]: Settings[Name]['default'] };

/** Settings as a client gives them; what is absent takes its default, or stays. */
export type CrawlerSettingsInput = {
  readonly [Name in SettingName]?: NonNullable<CrawlerSettings[Name]> | undefined;
};

/** The operator's defaults, before those of the table. */
export type CrawlerDefaults = Partial<CrawlerSettings>;

/** The names of all settings. */
export const settingNames = Object.keys(crawlerSettings) as readonly SettingName[];

/** The settings of a crawler whose creation names none, unless the operator has set others. */
export const defaultSettings = fromEachSetting((name) => crawlerSettings[name].default);

/** Returns the settings that `input` names, as they are kept. Throws `invalid` naming the field. */
export function checkSettings(input: CrawlerSettingsInput): Partial<CrawlerSettings> {
  const checked: Partial<Record<SettingName, unknown>> = {};
  for (const name of settingNames) {
    const setting: Setting<CrawlerSettings[SettingName]> = crawlerSettings[name];
    const value = input[name];
    if (value !== undefined) checked[name] = setting.check(fieldName(name), value);
  }
  return checked as Partial<CrawlerSettings>;
}

type Stored<Value> = Exclude<Value, undefined> | (undefined extends Value ? null : never);

/** Settings as the stores keep them: null where the value is undefined. */
export type StoredSettings = { readonly [Name in SettingName]: Stored<CrawlerSettings[Name]> };

/** Settings, or those of them that change, for a store. */
export function toStoredSettings(settings: CrawlerSettings): StoredSettings;
export function toStoredSettings(settings: Partial<CrawlerSettings>): Partial<StoredSettings>;
export function toStoredSettings(settings: Partial<CrawlerSettings>): Partial<StoredSettings> {
  const named = settingNames.filter((name) => name in settings);
  return Object.fromEntries(named.map((name) => [name, settings[name] ?? null]));
}

/**
 * The settings of a stored crawler. One that was stored before a setting existed has the default
 * of that setting.
 */
export function fromStoredSettings(stored: Partial<StoredSettings>): CrawlerSettings {
  return fromEachSetting((name) =>
    stored[name] === undefined ? crawlerSettings[name].default : (stored[name] ?? undefined),
  );
}

function fromEachSetting(value: (name: SettingName) => unknown): CrawlerSettings {
  return Object.fromEntries(settingNames.map((name) => [name, value(name)])) as CrawlerSettings;
}
