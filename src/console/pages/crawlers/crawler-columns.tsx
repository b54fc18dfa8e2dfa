import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { Moment } from '../../format/moment.tsx';
import { count, rate, shortCount } from '../../format/numbers.ts';
import { Link } from '../../shell/route.tsx';
import type { Column } from '../../ui/data-table.tsx';
import { isAttention } from './attention.tsx';
import { CrawlerStatusBadge, crawlerKind } from './crawler-status.tsx';

type Value = (crawler: Crawler) => number | string;

const number =
  (pick: (crawler: Crawler) => bigint | undefined): Value =>
  (crawler) =>
    Number(pick(crawler) ?? 0);

/** What each column is sorted by. */
const VALUES: Readonly<Record<string, Value>> = {
  name: ({ name }) => name,
  status: (crawler) => (isAttention(crawler) ? 2 : crawler.pausedBy === undefined ? 0 : 1),
  waiting: number(({ activity }) => activity?.waiting),
  running: number(({ activity }) => activity?.running),
  retrying: number(({ activity }) => activity?.retrying),
  done: number(({ activity }) => activity?.completed),
  failed: number(({ activity }) => activity?.failed),
  rate: crawlRate,
  deliveries: number(({ activity }) => activity?.deliveriesPending),
  pushed: ({ activity }) => ms(activity?.lastPushAt),
  crawled: ({ activity }) => ms(activity?.lastCrawlAt),
  probed: ({ activity }) => ms(activity?.lastProbeAt),
};

/** The columns of the list of crawlers. */
export const crawlerColumns: readonly Column<Crawler>[] = (
  [
    {
      id: 'name',
      title: 'Name',
      whole: true,
      cell: (crawler) => (
        <>
          <Link to={`/crawlers/${crawler.name}`} class="name-link clip name" title={crawler.name}>
            {crawler.name}
          </Link>
          <div class="muted small nowrap">{crawlerKind(crawler)}</div>
        </>
      ),
    },
    {
      id: 'status',
      title: 'Status',
      whole: true,
      beside: true,
      cell: (crawler) => <CrawlerStatusBadge crawler={crawler} />,
    },
    { id: 'waiting', title: 'Waiting', number: true, cell: figure('waiting') },
    {
      id: 'running',
      title: 'Running',
      number: true,
      cell: ({ activity, concurrency }) => (
        <span class="nowrap">
          {count(activity?.running ?? 0n)} <span class="muted">of {count(concurrency)}</span>
        </span>
      ),
    },
    { id: 'retrying', title: 'Retrying', number: true, cell: figure('retrying') },
    { id: 'done', title: 'Done', number: true, cell: figure('done') },
    { id: 'failed', title: 'Failed', number: true, cell: figure('failed') },
    {
      id: 'rate',
      title: 'Rate',
      minor: true,
      number: true,
      cell: (crawler) => (
        <span class={crawlRate(crawler) === 0 ? 'muted' : undefined}>
          {rate(crawlRate(crawler))}
        </span>
      ),
    },
    {
      id: 'deliveries',
      title: 'To deliver',
      minor: true,
      number: true,
      cell: (crawler) =>
        deliveryOf(crawler).postsToCallback ? (
          figure('deliveries')(crawler)
        ) : (
          <span class="muted">–</span>
        ),
    },
    {
      id: 'pushed',
      title: 'Last push',
      minor: true,
      cell: ({ activity }) => <Moment at={activity?.lastPushAt} />,
    },
    {
      id: 'crawled',
      title: 'Last crawl',
      minor: true,
      cell: ({ activity }) => <Moment at={activity?.lastCrawlAt} />,
    },
    {
      id: 'probed',
      title: 'Last probe',
      minor: true,
      cell: (crawler) => (
        <Moment
          at={crawler.activity?.lastProbeAt}
          none={deliveryOf(crawler).postsToCallback ? 'never' : '–'}
        />
      ),
    },
  ] satisfies readonly Column<Crawler>[]
).map((column) => ({ ...column, sortable: true }));

/** Crawlers in the order of a column; those that are alike by name. */
export function sortCrawlers(
  crawlers: readonly Crawler[],
  by: string,
  descending: boolean,
): readonly Crawler[] {
  const value = VALUES[by] ?? (({ name }: Crawler) => name);
  const sign = descending ? -1 : 1;
  return [...crawlers].sort((left, right) => {
    const [a, b] = [value(left), value(right)];
    if (a !== b) return a < b ? -sign : sign;
    return left.name < right.name ? -1 : 1;
  });
}

/** Crawls that end in a second. */
function crawlRate({ activity }: Crawler): number {
  return (activity?.rates?.completed ?? 0) + (activity?.rates?.failed ?? 0);
}

function figure(id: string) {
  return (crawler: Crawler) => {
    const value = Number(VALUES[id]?.(crawler) ?? 0);
    return (
      <span class={value === 0 ? 'muted' : undefined} title={count(value)}>
        {shortCount(value)}
      </span>
    );
  };
}

function ms(at: Parameters<typeof timestampMs>[0] | undefined): number {
  return at === undefined ? 0 : timestampMs(at);
}
