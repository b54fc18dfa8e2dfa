import { median } from '../dispatch/figure-tables.ts';

/** What one contender did in one step of one round. */
export interface RealFigure {
  readonly name: string;
  /** The first page since the start, those after it, and the warm ones. */
  readonly step: 'first' | 'cold' | 'storage' | 'webhook';
  readonly pages: number;
  /** Of the first page: since its process was started. */
  readonly seconds: number;
  /** Of the crawling process, in all its threads. */
  readonly cpuSeconds: number;
  readonly databaseSeconds: number;
  readonly handshakes: number;
  readonly resumed: number;
  readonly lookups: number;
  readonly residentMb: number;
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** The median, and in brackets the least and the most of several rounds. */
function spread(values: readonly number[], digits: number): string {
  if (values.some(Number.isNaN)) return '';
  const middle = median(values).toFixed(digits);
  if (values.length < 2) return middle;
  return `${middle} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`;
}

/** The tables of a run, as Markdown. */
export function realTables(figures: readonly RealFigure[], names: readonly string[]): string {
  const of = (name: string, step: RealFigure['step']): RealFigure[] =>
    figures.filter((figure) => figure.name === name && figure.step === step);
  const table = (head: string, rows: readonly (readonly [string, Show])[]): string =>
    [
      row([head, ...names]),
      row(['', ...names].map(() => '---')).replaceAll(' ', ''),
      ...rows.map(([title, show]) => row([title, ...names.map(show)])),
    ].join('\n');
  const rate =
    (step: RealFigure['step']): Show =>
    (name) =>
      spread(
        of(name, step).map(({ pages, seconds }) => pages / seconds),
        0,
      );
  const cpu =
    (step: RealFigure['step']): Show =>
    (name) =>
      spread(
        of(name, step).map(({ pages, cpuSeconds }) => (cpuSeconds / pages) * 1_000),
        2,
      );
  const each =
    (toValue: (figure: RealFigure) => number): Show =>
    (name) =>
      spread(of(name, 'storage').map(toValue), 3);
  const coldPages = figures.find(({ step }) => step === 'cold')?.pages ?? 0;
  return [
    'Pages a second; medians, with the least and the most:',
    table('', [
      [`first ${coldPages.toLocaleString('en')}, storage`, rate('cold')],
      ['storage', rate('storage')],
      ['webhook', rate('webhook')],
    ]),
    'Processor seconds of the crawling process for 1,000 pages, and of Redis:',
    table('', [
      [`first ${coldPages.toLocaleString('en')}, storage`, cpu('cold')],
      ['storage', cpu('storage')],
      ['webhook', cpu('webhook')],
      [
        'Redis, storage',
        (name) =>
          spread(
            of(name, 'storage').map(
              ({ pages, databaseSeconds }) => (databaseSeconds / pages) * 1_000,
            ),
            2,
          ),
      ],
    ]),
    'Seconds from the start of the process to the end of its first page. For each warm page: TLS handshakes in full, resumed ones, and questions to the name server:',
    table('', [
      [
        'start to first page, s',
        (name) =>
          spread(
            of(name, 'first').map((one) => one.seconds),
            2,
          ),
      ],
      ['full handshakes', each(({ pages, handshakes, resumed }) => (handshakes - resumed) / pages)],
      ['resumed handshakes', each(({ pages, resumed }) => resumed / pages)],
      ['questions for names', each(({ pages, lookups }) => lookups / pages)],
      [
        'resident memory, MB',
        (name) =>
          spread(
            of(name, 'webhook').map((one) => one.residentMb),
            0,
          ),
      ],
    ]),
  ].join('\n\n');
}

type Show = (name: string) => string;
