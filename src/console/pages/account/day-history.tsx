import type { HistoryDay } from '../../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { bytes, count, percent } from '../../format/numbers.ts';
import { countColumn, DataTable } from '../../ui/data-table.tsx';
import { lazy } from '../../ui/lazy.tsx';
import { Empty } from '../../ui/notice.tsx';
import { dayBefore } from './days.ts';

const Chart = lazy(async () => (await import('../../ui/chart.tsx')).Chart);

/** Successes and failures of the last days as bars, and everything that is counted as a table. */
export function DayHistory(props: {
  /** Undefined until it is read. */
  readonly days: readonly HistoryDay[] | undefined;
  /** How many days are drawn, today the last. */
  readonly last: number;
}) {
  const { days = [], last } = props;
  if (props.days !== undefined && days.length === 0) {
    return (
      <Empty title="Nothing has happened in these days">
        <p>Push some URLs; every day with work gets a bar.</p>
      </Empty>
    );
  }
  const byDate = new Map(days.map((day) => [day.date, day]));
  const dates = Array.from({ length: last }, (_, at) => dayBefore(last - 1 - at));
  const values = (name: 'success' | 'failed'): number[] =>
    dates.map((date) => Number(byDate.get(date)?.[name] ?? 0));
  const sum = (name: 'success' | 'failed'): number =>
    values(name).reduce((all, each) => all + each, 0);
  return (
    <div class="stack">
      <Chart
        label={`${count(sum('success'))} successes and ${count(sum('failed'))} failures in ${last} days`}
        shape="bars"
        times={dates.map((date) => Date.parse(`${date}T12:00:00Z`) / 1_000)}
        series={[
          { name: 'Success', colour: '--accent', values: values('success') },
          { name: 'Failed', colour: '--bad', values: values('failed') },
        ]}
      />
      <details>
        <summary>
          The numbers of each day{' '}
          <span class="muted">
            ({percent(sum('success'), sum('success') + sum('failed'))} succeeded)
          </span>
        </summary>
        <DataTable
          label="By day, UTC"
          rows={[...days].reverse()}
          keyOf={(day) => day.date}
          columns={[
            { id: 'date', title: 'Day, UTC', cell: (day) => <b>{day.date}</b>, whole: true },
            countColumn<HistoryDay>('Pushed', (day) => day.pushed),
            countColumn<HistoryDay>('Success', (day) => day.success),
            countColumn<HistoryDay>('Failed', (day) => day.failed),
            {
              id: 'statuses',
              title: 'By cb_status',
              cell: (day) => (
                <span class="small">
                  {Object.entries(day.byCbStatus)
                    .map(([status, times]) => `${status}: ${count(times)}`)
                    .join(', ')}
                </span>
              ),
            },
            countColumn<HistoryDay>('Retries', (day) => day.retries),
            countColumn<HistoryDay>('Climbs', (day) => day.climbs),
            {
              id: 'proxyBytes',
              title: 'Through proxies',
              number: true,
              cell: (day) => bytes(Number(day.proxyBytes)),
            },
            countColumn<HistoryDay>('Timeouts', (day) => day.timeouts),
            countColumn<HistoryDay>('Delivered', (day) => day.deliveries),
            countColumn<HistoryDay>('Failed attempts', (day) => day.deliveryFailures),
            countColumn<HistoryDay>('Billed', (day) => day.billed),
          ]}
        />
      </details>
    </div>
  );
}
