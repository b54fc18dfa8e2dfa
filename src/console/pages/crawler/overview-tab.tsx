import { useSignal } from '@preact/signals';
import { settingFields } from '../../../client/setting-fields.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useAction } from '../../api/use-action.ts';
import { LocalTime, Moment } from '../../format/moment.tsx';
import { count, duration, rate } from '../../format/numbers.ts';
import { zone } from '../../format/zone.ts';
import { Card, Facts, Figures } from '../../ui/card.tsx';
import { lazy } from '../../ui/lazy.tsx';
import { Meter } from '../../ui/meter.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { HistoryCard } from './history-card.tsx';
import type { Sample } from './samples.ts';
import { TimelineCard } from './timeline-card.tsx';

const Chart = lazy(async () => (await import('../../ui/chart.tsx')).Chart);

/** What a crawler does now and has done by day. */
export function OverviewTab(props: {
  readonly view: CrawlerView;
  readonly samples: readonly Sample[];
}) {
  const { crawler } = props.view;
  const { activity } = crawler;
  const number = (value: bigint | undefined): string => count(value ?? 0n);
  const failed = Number(activity?.failed ?? 0);
  const now = props.samples.at(-1);
  return (
    <div class="stack">
      <Figures
        items={[
          { name: 'Waiting', value: number(activity?.waiting) },
          {
            name: 'Being crawled',
            value: number(activity?.running),
            of: <Concurrency key={crawler.concurrency} view={props.view} />,
          },
          { name: 'Retrying', value: number(activity?.retrying) },
          { name: 'Done', value: number(activity?.completed) },
          { name: 'Failed', value: count(failed), kind: failed > 0 ? 'bad' : undefined },
          { name: 'Rate', value: rate((now?.done ?? 0) + (now?.failed ?? 0)) },
          ...(deliveryOf(crawler).postsToCallback
            ? [{ name: 'To deliver', value: number(activity?.deliveriesPending) }]
            : []),
        ]}
      />
      <LiveCharts samples={props.samples} />
      <TimelineCard view={props.view} />
      <HistoryCard view={props.view} />
      <Card title="Details">
        <div class="stack">
          <Meter
            label="Slots in use"
            used={Number(activity?.running ?? 0)}
            limit={crawler.concurrency}
            mayBeFull
          />
          <Facts
            items={[
              ['Worked on by', <Processes of={crawler.processes} />],
              ['Last push', <Moment at={activity?.lastPushAt} />],
              ['Last crawl', <Moment at={activity?.lastCrawlAt} />],
              ...(deliveryOf(crawler).postsToCallback
                ? [
                    ['Last delivery', <Moment at={activity?.lastDeliveryAt} />] as const,
                    ['Last probe', <Moment at={activity?.lastProbeAt} />] as const,
                  ]
                : []),
              ['Pushed so far', number(activity?.pushed)],
              ['Deleted', number(activity?.deleted)],
              ['Purged', number(activity?.purged)],
              ['Created', <LocalTime at={crawler.createdAt} />],
            ]}
          />
        </div>
      </Card>
    </div>
  );
}

const CONCURRENCY = settingFields.find(({ name }) => name === 'concurrency');

/** How many crawls run at a time, which can be changed where it stands. */
function Concurrency({ view }: { readonly view: CrawlerView }) {
  const { name, etag, concurrency } = view.crawler;
  const typed = useSignal(String(concurrency));
  /** Newer than that of the view, until the crawler is read again. */
  const saved = useSignal(concurrency);
  const save = useAction(async () => {
    const { crawlers } = clientsFor(view.type);
    const wanted = Number(typed.value);
    await crawlers.updateCrawler({ name, etag, concurrency: wanted });
    saved.value = wanted;
    toast(`Concurrency of ${name}: ${count(wanted)}.`);
    view.refresh();
  });
  return (
    <>
      of{' '}
      <input
        class="input in-place"
        type="number"
        aria-label="Concurrency"
        title="Type another number and press Enter."
        min={CONCURRENCY?.form.min ?? 1}
        {...(CONCURRENCY === undefined ? {} : { max: CONCURRENCY.form.max })}
        required
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
        }}
        onBlur={() => {
          if (!save.busy) typed.value = String(saved.value);
        }}
        onKeyDown={({ key, currentTarget }) => {
          if (key === 'Enter' && currentTarget.reportValidity()) void save.run();
        }}
      />
      <FaultNotice fault={save.fault} />
    </>
  );
}

function LiveCharts({ samples }: { readonly samples: readonly Sample[] }) {
  const times = samples.map(({ at }) => at);
  const now = samples.at(-1);
  return (
    <div class="fields">
      <Card title="Throughput, since this page was opened">
        <Chart
          label={`Crawls that end in a second, now ${rate((now?.done ?? 0) + (now?.failed ?? 0))}`}
          times={times}
          zone={zone.value}
          show={(value) => String(Math.round(value * 10) / 10)}
          unit="numbers"
          series={[
            {
              name: 'Completed per second',
              colour: '--accent',
              values: samples.map(({ done }) => done),
            },
            { name: 'Failed', colour: '--bad', values: samples.map(({ failed }) => failed) },
          ]}
        />
      </Card>
      <Card title="Queue, since this page was opened">
        <Chart
          label={`URLs that wait, now ${count(now?.queued ?? 0)}`}
          times={times}
          zone={zone.value}
          series={[
            {
              name: 'Waiting and retrying',
              colour: '--accent',
              values: samples.map(({ queued }) => queued),
            },
          ]}
        />
      </Card>
      <Card title="Time of a crawl, within a minute">
        <Chart
          label={`How long crawls take, now ${duration(now?.medianMs ?? 0)} for half of them`}
          times={times}
          zone={zone.value}
          show={duration}
          unit="milliseconds"
          series={[
            {
              name: 'p50',
              colour: '--accent',
              values: samples.map(({ medianMs }) => medianMs),
            },
            {
              name: 'p95',
              colour: '--warn',
              values: samples.map(({ p95Ms }) => p95Ms),
            },
          ]}
        />
      </Card>
    </div>
  );
}

/** The processes that work on the crawler, and the slots of each. */
function Processes({ of: processes }: { readonly of: CrawlerView['crawler']['processes'] }) {
  if (processes.length === 0) return <span class="muted">no process now</span>;
  return (
    <ul class="unmarked">
      {processes.map(({ id, slots }) => (
        <li key={id}>
          <span title={id}>{id.split(':').slice(0, 2).join(':')}</span>, {count(slots)}{' '}
          {slots === 1 ? 'slot' : 'slots'}
        </li>
      ))}
    </ul>
  );
}
