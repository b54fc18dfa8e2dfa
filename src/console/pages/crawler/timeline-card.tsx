import { create } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { signal } from '@preact/signals';
import {
  type CrawlerTimeline,
  CrawlerTimelineSchema,
  type TimelinePoint,
  TimelineRange,
} from '../../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { accountClients } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useFeed } from '../../api/use-feed.ts';
import { count, duration } from '../../format/numbers.ts';
import { momentText, type Zone, zone, zoneName } from '../../format/zone.ts';
import { query, queryField, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import type { Series } from '../../ui/chart.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { lazy } from '../../ui/lazy.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { Segments } from '../../ui/segments.tsx';
import { crawlersSource, knownCrawlers } from '../crawlers/crawler-feed.ts';
import type { CrawlerView } from './crawler-page.tsx';

const Chart = lazy(async () => (await import('../../ui/chart.tsx')).Chart);

const RANGES = {
  hour: { text: 'Hour', range: TimelineRange.HOUR, step: 'minute', everyMs: 15_000 },
  day: { text: 'Day', range: TimelineRange.DAY, step: '10 minutes', everyMs: 60_000 },
  week: { text: 'Week', range: TimelineRange.WEEK, step: 'hour', everyMs: 60_000 },
  quarter: { text: '90 days', range: TimelineRange.QUARTER, step: 'day', everyMs: 60_000 },
} as const;
type RangeName = keyof typeof RANGES;
const NAMES = Object.keys(RANGES) as RangeName[];

/** Most crawlers of one chart: as many as there are colours. */
const MAX_LINES = 5;
const COLOURS = ['--accent', '--bad', '--warn', '--ok', '--idle'];

const range = queryField<RangeName>('range', NAMES, 'hour');
const withThese = () => (query.value.get('with') ?? '').split(',').filter((each) => each !== '');

/** Whether tables are shown; also of another range. */
const areTablesOpen = signal(false);

/** One kind of number over time. */
interface Metric {
  readonly title: string;
  readonly lines: readonly {
    readonly name: string;
    readonly colour: string;
    readonly of: (point: TimelinePoint) => number | undefined;
  }[];
  readonly show?: (value: number) => string;
  readonly unit?: 'milliseconds';
}

/** What the crawler did within the last hour, day, week or 90 days, alone or next to others. */
export function TimelineCard({ view }: { readonly view: CrawlerView }) {
  const { name } = view.crawler;
  const others = withThese().filter((each) => each !== name);
  const names = [name, ...others].slice(0, MAX_LINES);
  const { text, step, everyMs } = RANGES[range.value];
  const asked = RANGES[range.value].range;
  const feed = useFeed<readonly CrawlerTimeline[]>({
    key: `timeline ${asked} ${names.join()}`,
    everyMs,
    async poll(signal) {
      const call = { crawlers: names, range: asked };
      return (await accountClients().stats.getTimeline(call, { signal })).crawlers;
    },
  });
  const zoneOf = asked === TimelineRange.QUARTER ? 'utc' : zone.value;
  return (
    <Card
      title="History"
      actions={
        <div class="row">
          <Segments
            label="Range of the history"
            value={range.value}
            options={NAMES.map((each) => [each, RANGES[each].text] as const)}
            onPick={(picked) => {
              range.value = picked;
            }}
          />
          <Segments<Zone>
            label="Times"
            value={zoneOf}
            options={[
              ['local', 'Local'],
              ['utc', 'UTC'],
            ]}
            onPick={(picked) => {
              zone.value = picked;
            }}
          />
        </div>
      }
    >
      <div class="stack">
        <p class="muted small">
          Each point is a step of one {step}. Times are {zoneName(zoneOf)}
          {asked === TimelineRange.QUARTER && ', as days are counted in UTC'}. Gaps are times in
          which the service did not run.
        </p>
        <Compared names={names} />
        <FaultNotice fault={feed.fault} />
        <Timelines
          // Empty charts have the size of those that are read.
          found={feed.data ?? names.map((each) => create(CrawlerTimelineSchema, { name: each }))}
          label={`Last ${text.toLowerCase()}`}
          step={step}
          zoneOf={zoneOf}
          hasDeliveries={deliveryOf(view.crawler).postsToCallback}
          isQuarter={asked === TimelineRange.QUARTER}
        />
      </div>
    </Card>
  );
}

function Timelines(props: {
  readonly found: readonly CrawlerTimeline[];
  readonly label: string;
  readonly step: string;
  readonly zoneOf: Zone;
  readonly hasDeliveries: boolean;
  readonly isQuarter: boolean;
}) {
  const { found, step, zoneOf } = props;
  const times = (found[0]?.points ?? []).map(secondsOf);
  const metrics = metricsOf(props.step, props.hasDeliveries, !props.isQuarter, found.length > 1);
  return (
    <>
      <div class="fields">
        {metrics.map(({ title, lines, show = count, unit }) => (
          <div key={title}>
            <h3>{title}</h3>
            <Chart
              label={`${title}, ${props.label.toLowerCase()}`}
              times={times}
              series={seriesOf(found, lines)}
              show={show}
              unit={unit ?? 'counts'}
              zone={zoneOf}
            />
          </div>
        ))}
      </div>
      {found.map(({ name, points }) => (
        <details
          key={name}
          open={areTablesOpen.value}
          onToggle={(event) => {
            areTablesOpen.value = event.currentTarget.open;
          }}
        >
          <summary>The numbers of {name} as a table</summary>
          <DataTable
            label={`${props.label} of ${name}, by steps of one ${step}`}
            rows={[...points].reverse()}
            keyOf={(point) => String(secondsOf(point))}
            columns={[
              {
                id: 'at',
                title: `From, ${zoneName(zoneOf)}`,
                cell: (point) => momentText(secondsOf(point), zoneOf),
                whole: true,
              },
              ...metricsOf(step, props.hasDeliveries, !props.isQuarter, false).flatMap(
                ({ title, lines, show = count }) =>
                  lines.map((line) => ({
                    id: `${title} ${line.name}`,
                    title: line.name,
                    number: true,
                    cell: (point: TimelinePoint) => {
                      const value = valueOf(point, line.of);
                      return value === null ? '–' : show(value);
                    },
                  })),
              ),
            ]}
          />
        </details>
      ))}
    </>
  );
}

function metricsOf(
  step: string,
  hasDeliveries: boolean,
  hasQueue: boolean,
  isCompared: boolean,
): readonly Metric[] {
  const line = (
    name: string,
    colour: string,
    of: (point: TimelinePoint) => number | undefined,
  ) => ({
    name,
    colour,
    of,
  });
  const all: readonly Metric[] = [
    {
      title: `Crawls per ${step}`,
      lines: [
        line('Completed', '--accent', ({ success }) => Number(success)),
        line('Failed', '--bad', ({ failed }) => Number(failed)),
      ],
    },
    ...(hasQueue
      ? [
          {
            title: 'Queue',
            lines: [
              line('Waiting and retrying', '--accent', ({ queued }) =>
                queued === undefined ? undefined : Number(queued),
              ),
            ],
          },
        ]
      : []),
    {
      title: 'Time of a crawl',
      show: duration,
      unit: 'milliseconds',
      lines: [
        line('p50', '--accent', ({ medianMs }) => medianMs),
        line('p95', '--warn', ({ p95Ms }) => p95Ms),
      ],
    },
    ...(hasDeliveries
      ? [
          {
            title: `Deliveries per ${step}`,
            lines: [
              line('Delivered', '--accent', ({ deliveries }) => Number(deliveries)),
              line('Failed attempts', '--bad', ({ deliveryFailures }) => Number(deliveryFailures)),
            ],
          },
        ]
      : []),
  ];
  if (!isCompared) return all;
  // Several crawlers: a chart for each line, in which each crawler has one.
  return all.flatMap(({ title, lines, ...rest }) =>
    lines.map((each) => ({
      ...rest,
      title: lines.length === 1 ? title : `${title}: ${each.name}`,
      lines: [each],
    })),
  );
}

function seriesOf(found: readonly CrawlerTimeline[], lines: Metric['lines']): readonly Series[] {
  return found.flatMap(({ name, points }, at) =>
    lines.map((line) => ({
      name: found.length === 1 ? line.name : name,
      colour: found.length === 1 ? line.colour : (COLOURS[at] ?? '--text'),
      dashed: found.length > 1 && at > 2,
      values: points.map((point) => valueOf(point, line.of)),
    })),
  );
}

function valueOf(point: TimelinePoint, of: (point: TimelinePoint) => number | undefined) {
  return point.missing ? null : (of(point) ?? null);
}

function secondsOf({ at }: TimelinePoint): number {
  return at === undefined ? 0 : timestampDate(at).getTime() / 1_000;
}

/** Which crawlers are in the charts. */
function Compared({ names }: { readonly names: readonly string[] }) {
  const all = useFeed({
    key: 'names of crawlers',
    everyMs: 60_000,
    poll: async (signal) => {
      if (knownCrawlers.peek().length === 0) await crawlersSource().poll(signal);
      return knownCrawlers.peek().map((each) => each.name);
    },
  });
  const [own, ...others] = names;
  const change = (next: readonly string[]): void => setQuery('with', next.join(','));
  const rest = (all.data ?? []).filter((each) => !names.includes(each));
  return (
    <div class="row">
      {others.map((each) => (
        <Button
          key={each}
          small
          label={`Take ${each} out of the charts`}
          onClick={() => change(others.filter((other) => other !== each))}
        >
          {each} ×
        </Button>
      ))}
      {names.length < MAX_LINES && rest.length > 0 && (
        <select
          class="input short"
          aria-label={`Compare ${own} with`}
          value=""
          onChange={(event) => change([...others, event.currentTarget.value])}
        >
          <option value="">Compare with…</option>
          {rest.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
