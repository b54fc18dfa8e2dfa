import type { NamedFigure } from '../command-figures.ts';
import type { CrawlFigure, Latency, Mode } from './contender.ts';

/** One kind of load. */
export interface Cell {
  readonly mode: Mode;
  readonly concurrency: number;
}

/** Everything that a run has measured; the figures of a contender and a cell are those of all rounds. */
export interface Figures {
  readonly cells: readonly Cell[];
  readonly contenders: readonly string[];
  crawls(contender: string, cell: Cell): readonly CrawlFigure[];
  readonly pushes: ReadonlyMap<string, Latency>;
  readonly starts: ReadonlyMap<string, Latency>;
  readonly commands: readonly NamedFigure[];
}

/** The contender that the others are compared with, if it takes part. */
const PEER = 'BullMQ on Redis';

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [row(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(row)].join('\n');
}

const nameOf = ({ mode, concurrency }: Cell): string => `${mode}, concurrency ${concurrency}`;

/** The ratio to the peer in the same round, so that what slows all of a round down does not count. */
function ratio(figures: Figures, contender: string, cell: Cell): string {
  if (contender === PEER || !figures.contenders.includes(PEER)) return '';
  const peers = figures.crawls(PEER, cell);
  const ratios = figures
    .crawls(contender, cell)
    .map(({ perSecond }, round) => perSecond / (peers[round]?.perSecond ?? Number.NaN));
  return ` (${median(ratios).toFixed(2)})`;
}

function cellTable(figures: Figures, show: (contender: string, cell: Cell) => string): string {
  return table(
    ['', ...figures.contenders],
    figures.cells.map((cell) => [
      nameOf(cell),
      ...figures.contenders.map((contender) => show(contender, cell)),
    ]),
  );
}

const ms = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;

/** The tables of a run, as Markdown. */
export function figureTables(figures: Figures): string {
  const parts = [
    'Pages a second, out of a backlog; in brackets the median of the ratios to BullMQ in the same rounds:',
    cellTable(figures, (contender, cell) => {
      const rate = median(figures.crawls(contender, cell).map((each) => each.perSecond));
      return `${Math.round(rate).toLocaleString('en')}${ratio(figures, contender, cell)}`;
    }),
    'Processor seconds of the crawling process (without the database) for 1,000 pages:',
    cellTable(figures, (contender, cell) =>
      median(figures.crawls(contender, cell).map((each) => each.cpuPerThousand)).toFixed(2),
    ),
  ];
  const counted = figures.contenders.filter((contender) =>
    figures.cells.some((cell) => figures.crawls(contender, cell)[0]?.commandsPerPage !== undefined),
  );
  if (counted.length > 0) {
    parts.push(
      'Commands to MongoDB for each page of these runs, counted in the driver:',
      table(
        ['', ...counted],
        figures.cells.map((cell) => [
          nameOf(cell),
          ...counted.map((contender) => {
            const all = figures.crawls(contender, cell).map((each) => each.commandsPerPage);
            return median(all.filter((each) => each !== undefined)).toFixed(3);
          }),
        ]),
      ),
    );
  }
  parts.push(
    'Push of one URL, by 16 connections at once. Push to start: from a push to an idle crawler to the request at the site, on MongoDB pushed through another process.',
    table(
      ['', 'push, median', 'push, p99', 'push to start, median', 'push to start, p99'],
      [...figures.pushes].map(([contender, push]) => {
        const start = figures.starts.get(contender);
        const starts = start === undefined ? ['', ''] : [ms(start.median), ms(start.p99)];
        return [contender, ms(push.median), ms(push.p99), ...starts];
      }),
    ),
  );
  if (figures.commands.length > 0) {
    parts.push(
      'Commands to MongoDB of one process (`npm run bench:commands` names them):',
      table(
        ['', 'commands', 'without those of an idle process'],
        figures.commands.map(({ what, unit, perUnit, aboveIdle }) => [
          what,
          `${perUnit.toFixed(2)} a ${unit}`,
          unit === 'URL' ? aboveIdle.toFixed(2) : '',
        ]),
      ),
    );
  }
  return parts.join('\n\n');
}
