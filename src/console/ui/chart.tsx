import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { count } from '../format/numbers.ts';
import { momentText, tickOf, type Zone } from '../format/zone.ts';
import { appliedTheme } from '../shell/theme.ts';
import { valueAxisSize } from './axis-size.ts';
import { lonePoints } from './lone-points.ts';

/** One line, or one kind of bar, of a chart. */
export interface Series {
  readonly name: string;
  /** A colour token, such as `--accent`. */
  readonly colour: string;
  /** Null where nothing is known: the line is interrupted. */
  readonly values: readonly (number | null)[];
  readonly dashed?: boolean;
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
  /** What values are: counts, which have no fractions, bytes, milliseconds, or any numbers. Default counts. */
  readonly unit?: 'counts' | 'bytes' | 'milliseconds' | 'numbers';
  /** Of the labels of time; bars are always of UTC days. Default the computer's own. */
  readonly zone?: Zone;
}

const HEIGHT = 200;
/** Steps of the time axis in seconds. */
const TIMES = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
  172_800, 604_800, 1_209_600, 2_419_200,
];
const DAYS = [1, 2, 3, 7, 14, 28].map((days) => days * 86_400);
/** Steps of the value axis: counts have no fractions. */
const STEPS = [0.1, 0.2, 0.5].concat(
  Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat(),
);

/** Steps of the value axis by the unit of its values; bytes are told in powers of 1,024, times in minutes. */
const VALUE_STEPS = {
  counts: STEPS.slice(3),
  bytes: Array.from({ length: 50 }, (_, power) => 2 ** power),
  milliseconds: STEPS.filter((step) => step >= 1 && step < 1_000).concat(
    TIMES.map((seconds) => seconds * 1_000),
  ),
  numbers: STEPS,
} as const;

/** Values over time. Bars are stacked, the first series at the bottom. */
export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const theme = appliedTheme.value;
  const names = props.series.map(({ name, colour }) => name + colour).join('\n');
  const at = useSignal<number | undefined>(undefined);

  useEffect(() => {
    const element = frame.current;
    if (element === null) return undefined;
    const options = optionsOf(props, element, (index) => {
      at.value = index;
    });
    const made = new uPlot(options, dataOf(props), element);
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
  }, [theme, names, props.shape, props.zone]);

  useEffect(() => {
    plot.current?.setData(dataOf(props));
  }, [props.times, props.series]);

  const { show = count } = props;
  const time = at.value === undefined ? undefined : props.times[at.value];
  return (
    <div class="stack tight">
      <ul class="legend">
        {props.series.map(({ name, colour, values, dashed }) => (
          <li key={name}>
            <i class={dashed ? 'dashed' : ''} style={{ background: `var(${colour})` }} />
            {name}
            {time !== undefined && at.value !== undefined && (
              <b class="figure">{shown(values[at.value], show)}</b>
            )}
          </li>
        ))}
        {time !== undefined && (
          <li class="muted">{momentText(time, props.shape === 'bars' ? 'day' : props.zone)}</li>
        )}
      </ul>
      <div class="chart" ref={frame} role="img" aria-label={props.label} />
    </div>
  );
}

function tickText(tick: number, step: number, { shape, zone }: ChartProps): string {
  return tickOf(tick, step, shape === 'bars' ? 'utc' : zone);
}

function shown(value: number | null | undefined, show: (value: number) => string): string {
  return value === null || value === undefined ? 'no data' : show(value);
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

function optionsOf(
  props: ChartProps,
  element: HTMLElement,
  onCrosshair: (index: number | undefined) => void,
): uPlot.Options {
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
    cursor: { y: false, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onCrosshair(cursor.idx ?? undefined)] },
    tzDate: (seconds) =>
      props.zone === 'utc' || shape === 'bars'
        ? uPlot.tzDate(new Date(seconds * 1_000), 'UTC')
        : new Date(seconds * 1_000),
    scales: {
      x: { time: true },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        // One line of text; uPlot would keep room for a title below it.
        size: 26,
        space: 90,
        incrs: shape === 'bars' ? DAYS : TIMES,
        values: (_plot, ticks, _axis, _space, step) =>
          ticks.map((tick) => tickText(tick, shape === 'bars' ? 86_400 : step, props)),
      },
      {
        ...axis,
        size: (_plot, labels) => valueAxisSize(labels, axis.font),
        incrs: [...VALUE_STEPS[props.unit ?? 'counts']],
        values: (_plot, ticks) => ticks.map((tick) => show(tick)),
      },
    ],
    series: [
      {},
      ...drawn.map((each) => ({
        label: each.name,
        stroke: colour(each.colour),
        ...(each.dashed === true ? { dash: [6, 4] } : {}),
        points:
          shape === 'bars'
            ? { show: false }
            : {
                show: false,
                size: 6,
                fill: colour(each.colour),
                filter: ({ data }: uPlot, at: number) => lonePoints([...(data[at] ?? [])]),
              },
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
