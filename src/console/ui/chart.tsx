import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { count } from '../format/numbers.ts';
import { appliedTheme } from '../shell/theme.ts';

/** One line, or one kind of bar, of a chart. */
export interface Series {
  readonly name: string;
  /** A colour token, such as `--accent`. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

/** The properties of {@link Chart}. */
interface ChartProps {
  /** What it shows, for screen readers. */
  readonly label: string;
  /** Seconds since 1970, ascending; of bars, the noon of each day in UTC. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly shape?: 'lines' | 'bars';
  readonly show?: (value: number) => string;
  /** Whether values are counts. Default true. */
  readonly whole?: boolean;
}

const HEIGHT = 200;
/** Steps of the time axis in seconds: its labels show seconds, or days. */
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];
const DAYS = [1, 2, 3, 7, 14, 28].map((days) => days * 86_400);
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
/** Steps of the value axis: counts have no fractions. */
const STEPS = [0.1, 0.2, 0.5].concat(
  Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat(),
);

/** Values over time. Bars are stacked, the first series at the bottom. */
export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const theme = appliedTheme.value;
  const names = props.series.map(({ name }) => name).join('\n');

  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf(props, element), dataOf(props), element);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [theme, names, props.shape]);

  useEffect(() => {
    plot.current?.setData(dataOf(props));
  }, [props.times, props.series]);

  return (
    <div class="stack tight">
      <ul class="legend">
        {props.series.map(({ name, colour }) => (
          <li key={name}>
            <i style={{ background: `var(${colour})` }} />
            {name}
          </li>
        ))}
      </ul>
      <div class="chart" ref={frame} role="img" aria-label={props.label} />
    </div>
  );
}

function dataOf({ times, series, shape }: ChartProps): uPlot.AlignedData {
  const values = series.map((each) => [...each.values]);
  if (shape === 'bars') {
    // Stacked: each series is drawn from the ground up to its sum, the tallest first.
    for (let at = 1; at < values.length; at += 1) {
      values[at] = (values[at] ?? []).map((v, i) => (v ?? 0) + (values[at - 1]?.[i] ?? 0));
    }
    values.reverse();
  }
  return [[...times], ...values];
}

function optionsOf(props: ChartProps, element: HTMLElement): uPlot.Options {
  const { series, shape, show = count } = props;
  const colour = (name: string): string => resolved(element, name);
  const drawn = shape === 'bars' ? series.toReversed() : series;
  const axis = {
    stroke: colour('--text-3'),
    font: `12px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: colour('--border'), width: 1 },
    ticks: { show: false },
  };
  const bars = uPlot.paths.bars?.({ size: [0.7, 40], radius: 0.15 });
  return {
    width: Math.max(element.clientWidth, 100),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 90,
        incrs: shape === 'bars' ? DAYS : TIMES,
        values: (_plot, ticks) =>
          ticks.map((tick) => (shape === 'bars' ? day : clock).format(tick * 1_000)),
      },
      {
        ...axis,
        size: 56,
        incrs: props.whole === false ? STEPS : STEPS.slice(3),
        values: (_plot, ticks) => ticks.map((tick) => show(tick)),
      },
    ],
    series: [
      {},
      ...drawn.map((each) => ({
        label: each.name,
        stroke: colour(each.colour),
        points: { show: false },
        ...(shape === 'bars' && bars !== undefined
          ? { fill: colour(each.colour), width: 0, paths: bars }
          : { width: 2 }),
      })),
    ],
  };
}

/** The value of a colour token in the present theme, as a canvas needs it. */
function resolved(element: HTMLElement, token: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
