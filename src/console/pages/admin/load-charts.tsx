import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { GetInstallationResponse } from '../../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { bytes, count, percent } from '../../format/numbers.ts';
import { serviceNow } from '../../format/service-clock.ts';
import { zone } from '../../format/zone.ts';
import { Card } from '../../ui/card.tsx';
import { lazy } from '../../ui/lazy.tsx';

const Chart = lazy(async () => (await import('../../ui/chart.tsx')).Chart);

/** Half an hour of readings, one each 5 s. */
const MAX_SAMPLES = 360;
/** Readings that are further apart have a gap between them, in seconds. */
const GAP_SECONDS = 20;

/** What all processes together did when they were read; null while nothing was read. */
interface Sample {
  /** Seconds since 1970. */
  readonly at: number;
  readonly crawls: number | null;
  readonly deliveries: number | null;
  /** Of the time of the busiest main thread. */
  readonly busyPercent: number | null;
  readonly memory: number | null;
}

const NOTHING = { crawls: null, deliveries: null, busyPercent: null, memory: null };

/** What the processes did since the page was opened. */
export function LoadCharts({ data }: { readonly data: GetInstallationResponse }) {
  const samples = useSignal<readonly Sample[]>([]);
  useEffect(() => {
    const next = sampleOf(data);
    const last = samples.peek().at(-1);
    const isGap = last !== undefined && next.at - last.at > GAP_SECONDS;
    const gap = isGap ? [{ at: last.at + 1, ...NOTHING }] : [];
    samples.value = [...samples.peek().slice(1 - MAX_SAMPLES), ...gap, next];
  }, [data]);
  const times = samples.value.map(({ at }) => at);
  const of = (name: Exclude<keyof Sample, 'at'>) => samples.value.map((each) => each[name]);
  const now = sampleOf(data);
  return (
    <div class="fields">
      <Card title="Work, since this page was opened">
        <Chart
          label={`Crawls and deliveries under way, now ${count(now.crawls)} and ${count(now.deliveries)}`}
          times={times}
          zone={zone.value}
          series={[
            { name: 'Crawls', colour: '--accent', values: of('crawls') },
            { name: 'Deliveries', colour: '--warn', values: of('deliveries') },
          ]}
        />
      </Card>
      <Card title="Busiest main thread">
        <Chart
          label={`How busy the busiest main thread is, now ${percent(now.busyPercent, 100)}`}
          times={times}
          zone={zone.value}
          show={(value) => percent(value, 100)}
          series={[{ name: 'Part of the time', colour: '--accent', values: of('busyPercent') }]}
        />
      </Card>
      <Card title="Memory of all processes">
        <Chart
          label={`Memory of all processes, now ${bytes(now.memory)}`}
          times={times}
          zone={zone.value}
          show={bytes}
          unit="bytes"
          series={[{ name: 'Held', colour: '--accent', values: of('memory') }]}
        />
      </Card>
    </div>
  );
}

function sampleOf({ processes }: GetInstallationResponse) {
  const sum = (of: (each: (typeof processes)[number]) => number): number =>
    processes.reduce((all, each) => all + of(each), 0);
  return {
    at: serviceNow() / 1_000,
    crawls: sum(({ crawls }) => crawls),
    deliveries: sum(({ deliveries }) => deliveries),
    busyPercent: 100 * Math.max(0, ...processes.map(({ eventLoopUse }) => eventLoopUse)),
    memory: sum(({ memoryBytes }) => Number(memoryBytes)),
  };
}
