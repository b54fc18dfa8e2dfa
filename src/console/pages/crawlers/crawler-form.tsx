import type { Crawler, Politeness } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { Fault } from '../../api/fault.ts';
import { CheckField, TextField } from '../../ui/field.tsx';

/** The settings of a crawler that can change, as they are typed. Empty is the default. */
export interface CrawlerDraft {
  readonly callbackUrl: string;
  readonly concurrency: string;
  readonly deliveryConcurrency: string;
  readonly maxRetries: string;
  readonly retryWindowHours: string;
  readonly unique: boolean;
  readonly uniqueFor: string;
  readonly maxPerHost: string;
  readonly delayMs: string;
  readonly robotsTxt: boolean;
  readonly groupByDomain: boolean;
  readonly group: string;
  /** Exceptions for some hosts, which the form keeps as they are. */
  readonly hosts: Politeness['hosts'];
}

/** The draft of a new crawler. */
export const emptyDraft: CrawlerDraft = {
  callbackUrl: '',
  concurrency: '',
  deliveryConcurrency: '',
  maxRetries: '',
  retryWindowHours: '',
  unique: false,
  uniqueFor: '',
  maxPerHost: '',
  delayMs: '',
  robotsTxt: false,
  group: '',
  groupByDomain: false,
  hosts: [],
};

/** The draft that says what a crawler has. */
export function draftOf(crawler: Crawler): CrawlerDraft {
  const { politeness } = crawler;
  return {
    callbackUrl: crawler.callbackUrl ?? '',
    concurrency: String(crawler.concurrency),
    deliveryConcurrency: String(crawler.deliveryConcurrency ?? 0),
    maxRetries: String(crawler.maxRetries),
    retryWindowHours: String(crawler.retryWindowHours),
    unique: crawler.unique ?? false,
    uniqueFor: String(crawler.uniqueFor ?? 0),
    maxPerHost: String(politeness?.maxPerHost ?? 0),
    delayMs: String(politeness?.delayMs ?? 0),
    robotsTxt: politeness?.robotsTxt ?? false,
    group: politeness?.group ?? '',
    groupByDomain: crawler.groupByDomain,
    hosts: politeness?.hosts ?? [],
  };
}

/** The fields of a draft that say something, under the names of the protocol. */
export function settingsOf(draft: CrawlerDraft, isWebhook: boolean) {
  const whole = (text: string): number | undefined => (text === '' ? undefined : Number(text));
  const politeness = {
    maxPerHost: whole(draft.maxPerHost) ?? 0,
    delayMs: whole(draft.delayMs) ?? 0,
    robotsTxt: draft.robotsTxt,
    group: draft.group,
    ...(draft.hosts.length === 0 ? {} : { hosts: draft.hosts }),
  };
  const isPolite = draft.robotsTxt || [draft.maxPerHost, draft.delayMs].some((text) => text !== '');
  return defined({
    callbackUrl: isWebhook ? draft.callbackUrl : undefined,
    concurrency: whole(draft.concurrency),
    deliveryConcurrency: isWebhook ? whole(draft.deliveryConcurrency) : undefined,
    maxRetries: whole(draft.maxRetries),
    retryWindowHours: whole(draft.retryWindowHours),
    unique: draft.unique,
    uniqueFor: whole(draft.uniqueFor),
    politeness: isPolite ? politeness : undefined,
    groupByDomain: draft.groupByDomain,
  });
}

/** The settings that a draft changes of a crawler. */
export function changedSettings(crawler: Crawler, draft: CrawlerDraft, isWebhook: boolean) {
  const before: Readonly<Record<string, unknown>> = settingsOf(draftOf(crawler), isWebhook);
  const after = settingsOf(draft, isWebhook);
  return Object.fromEntries(
    Object.entries(after).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  ) as Partial<typeof after>;
}

/** The whole numbers among them: label, name in the protocol, bounds, default, help. */
const NUMBERS = {
  concurrency: [
    'Concurrency',
    'concurrency',
    1,
    1_000,
    '20',
    'Most URLs crawled at once, over all processes.',
  ],
  deliveryConcurrency: [
    'Deliveries at once',
    'delivery_concurrency',
    0,
    1_000,
    '0',
    '0 lets the service find out what the URL takes in time.',
  ],
  maxRetries: [
    'Retries',
    'max_retries',
    0,
    1_000,
    '110',
    'Of a crawl that fails for a reason that may pass.',
  ],
  retryWindowHours: [
    'Retry window, hours',
    'retry_window_hours',
    1,
    336,
    '48',
    'From the first try; after it the last failure is the result.',
  ],
  uniqueFor: [
    'Once for, seconds',
    'unique_for',
    0,
    2_592_000,
    '0',
    '0: while it waits or is crawled.',
  ],
  maxPerHost: [
    'Requests at once',
    'politeness.max_per_host',
    0,
    1_000,
    '0',
    '0 is no limit other than the concurrency.',
  ],
  delayMs: [
    'Delay, milliseconds',
    'politeness.delay_ms',
    0,
    3_600_000,
    '0',
    'Least time between two requests at one host.',
  ],
} as const;

const titleOf = (field: keyof typeof NUMBERS): string => NUMBERS[field][0];

/** How each field is called. */
export const draftTitles: Readonly<Record<keyof CrawlerDraft, string>> = {
  callbackUrl: 'Callback URL',
  concurrency: titleOf('concurrency'),
  deliveryConcurrency: titleOf('deliveryConcurrency'),
  maxRetries: titleOf('maxRetries'),
  retryWindowHours: titleOf('retryWindowHours'),
  unique: 'Queue each URL once',
  uniqueFor: titleOf('uniqueFor'),
  maxPerHost: titleOf('maxPerHost'),
  delayMs: titleOf('delayMs'),
  robotsTxt: 'Honour robots.txt',
  group: 'Pace group',
  groupByDomain: 'Group hosts by domain',
  hosts: 'Exceptions for hosts',
};

/** The fields for those settings, with help next to each. */
export function SettingFields(props: {
  readonly draft: CrawlerDraft;
  readonly isWebhook: boolean;
  readonly fault: Fault | undefined;
  /** Whether a number has to be given; otherwise an empty one has its default. */
  readonly required?: boolean;
  readonly onChange: (draft: CrawlerDraft) => void;
}) {
  const { draft, isWebhook, fault, required = false } = props;
  const text = (
    name: Exclude<keyof CrawlerDraft, 'robotsTxt' | 'groupByDomain' | 'unique' | 'hosts'>,
  ) => ({
    value: draft[name],
    onInput: (value: string) => props.onChange({ ...draft, [name]: value }),
    fault,
  });
  const number = (field: keyof typeof NUMBERS) => {
    const [label, name, min, max, placeholder, help] = NUMBERS[field];
    const range = { type: 'number', min, max, required } as const;
    return { ...text(field), ...range, label, name, placeholder, help } as const;
  };
  return (
    <>
      {isWebhook && (
        <TextField
          {...text('callbackUrl')}
          label={draftTitles.callbackUrl}
          name="callback_url"
          type="url"
          required
          placeholder="https://example.com/hook/long-random-text"
          help="Each result is POSTed there, gzip-compressed. It has to answer 200, 201 or 204 quickly; it is probed once a minute."
        />
      )}
      <div class="fields">
        <TextField {...number('concurrency')} />
        {isWebhook && <TextField {...number('deliveryConcurrency')} />}
        <TextField {...number('maxRetries')} />
        <TextField {...number('retryWindowHours')} />
      </div>
      <fieldset class="choices">
        <legend>Repeated URLs</legend>
        <CheckField
          label={draftTitles.unique}
          help="unless its push says otherwise"
          value={draft.unique}
          onInput={(unique) => props.onChange({ ...draft, unique })}
        />
        <TextField {...number('uniqueFor')} />
      </fieldset>
      <fieldset class="choices">
        <legend>Politeness to each host</legend>
        <TextField {...number('maxPerHost')} />
        <TextField {...number('delayMs')} />
        <CheckField
          label={draftTitles.robotsTxt}
          help="and its crawl-delay"
          value={draft.robotsTxt}
          onInput={(robotsTxt) => props.onChange({ ...draft, robotsTxt })}
        />
        <TextField
          {...text('group')}
          label={draftTitles.group}
          name="politeness.group"
          help="Crawlers with the same name share these limits at each host."
        />
        <CheckField
          label={draftTitles.groupByDomain}
          help="all hosts of a registrable domain count as one; for URLs pushed from now on"
          value={draft.groupByDomain}
          onInput={(groupByDomain) => props.onChange({ ...draft, groupByDomain })}
        />
      </fieldset>
    </>
  );
}

function defined<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as never;
}
