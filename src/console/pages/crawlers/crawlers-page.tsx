import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { useFeed } from '../../api/use-feed.ts';
import { count } from '../../format/numbers.ts';
import { useCommands } from '../../shell/commands.ts';
import { Link, navigate, query, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Figures } from '../../ui/card.tsx';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Empty, FaultNotice, LiveNotice, Loading } from '../../ui/notice.tsx';
import { Pager } from '../../ui/pager.tsx';
import { Segments } from '../../ui/segments.tsx';
import { isAttention } from './attention.tsx';
import { BulkPause } from './bulk-pause.tsx';
import { crawlerColumns, sortCrawlers } from './crawler-columns.tsx';
import { crawlersSource, MAX_LISTED, rememberCrawlers } from './crawler-feed.ts';

/** Rows of a page: what is drawn anew each second, and at each key in the filter. */
const PAGE_ROWS = 50;

const FILTERS = [
  ['', 'All'],
  ['active', 'Working'],
  ['paused', 'Paused'],
  ['attention', 'Need attention'],
] as const;

/** All crawlers and what they do. */
export function CrawlersPage() {
  const { data: list, fault, refresh } = useFeed(crawlersSource());
  const data = list?.crawlers;
  const from = Math.max(Number(query.value.get('from')) || 0, 0);
  useEffect(() => {
    if (list !== undefined) rememberCrawlers(list);
  }, [list]);
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const text = query.value.get('q') ?? '';
  const filter = (query.value.get('show') ?? '') as (typeof FILTERS)[number][0];
  const by = query.value.get('sort') ?? 'name';
  const descending = query.value.get('order') === 'desc';
  useCommands([{ title: 'New crawler', keys: 'n', run: () => navigate('/crawlers/+new') }]);

  const head = (
    <div class="page-head">
      <div>
        <h1>Crawlers</h1>
        <p>Each is a queue of URLs with its own pace. Push URLs into one, get the pages back.</p>
      </div>
      <Link to="/crawlers/+new" class="button primary">
        <Icon name="add" size={16} /> New crawler
      </Link>
    </div>
  );
  if (data === undefined) {
    return (
      <>
        {head}
        <Loading fault={fault} retry={refresh} />
      </>
    );
  }
  if (data.length === 0) {
    return (
      <>
        {head}
        <Card>
          <Empty title="No crawler yet">
            <p>
              A crawler crawls what is pushed into it in the background, and sends each page to your
              webhook or keeps it for you.
            </p>
            <Link to="/crawlers/+new" class="button primary">
              Make the first one
            </Link>
          </Empty>
        </Card>
      </>
    );
  }
  const rows = sortCrawlers(
    data.filter((each) => isWanted(each, text, filter)),
    by,
    descending,
  );
  // Of the last page, when there are fewer rows than there were.
  const first = Math.min(from, Math.floor(Math.max(rows.length - 1, 0) / PAGE_ROWS) * PAGE_ROWS);
  const choose = (names: readonly string[], isChosen: boolean): void => {
    const next = new Set(chosen.value);
    for (const name of names) {
      if (isChosen) next.add(name);
      else next.delete(name);
    }
    chosen.value = next;
  };
  const chosenRows = rows.filter(({ name }) => chosen.value.has(name));
  const goTo = (row: number): void => {
    setQuery('from', row === 0 ? '' : String(row));
  };
  return (
    <>
      {head}
      <FaultNotice fault={fault} retry={refresh} />
      <LiveNotice
        isOn={list?.isPartial === true}
        kind="warn"
        title={`Only the first ${count(MAX_LISTED)} crawlers are listed`}
      >
        <p>
          The account has more. These are the first by name; sums and filters are of them alone.{' '}
          <Link to="/find">Find</Link> searches the names of all.
        </p>
      </LiveNotice>
      <Totals crawlers={data} />
      <Card flush>
        <div class="card-head">
          <div class="search">
            <Icon name="find" size={16} />
            <input
              class="input"
              type="search"
              aria-label="Filter by name"
              placeholder="Filter by name"
              value={text}
              onInput={(event) => {
                setQuery('from', '');
                setQuery('q', event.currentTarget.value);
              }}
            />
          </div>
          <Segments
            label="Show"
            value={filter}
            options={FILTERS}
            onPick={(value) => {
              setQuery('from', '');
              setQuery('show', value);
            }}
          />
          <div class="row">
            <Button
              small
              disabled={rows.length === 0}
              onClick={() => {
                const isNone = chosenRows.length === 0;
                choose(
                  rows.map(({ name }) => name),
                  isNone,
                );
              }}
            >
              {chosenRows.length === 0 ? `Choose all ${count(rows.length)}` : 'Choose none'}
            </Button>
            {chosenRows.length > 0 && (
              <BulkPause
                chosen={chosenRows}
                onDone={() => {
                  chosen.value = new Set();
                  refresh();
                }}
              />
            )}
          </div>
        </div>
        {rows.length === 0 ? (
          <Empty title="No crawler is like that">
            <Button
              onClick={() => {
                setQuery('q', '');
                setQuery('show', '');
              }}
            >
              Show all {count(data.length)}
            </Button>
          </Empty>
        ) : (
          <DataTable
            label="Crawlers"
            columns={columnsToChoose(chosen.value, choose)}
            rows={rows.slice(first, first + PAGE_ROWS)}
            keyOf={(row) => row.name}
            sort={{ by, descending }}
            onSort={(id) => {
              setQuery('from', '');
              setQuery('order', id === by && !descending ? 'desc' : '');
              setQuery('sort', id === 'name' ? '' : id);
              if (id !== by && id !== 'name') setQuery('order', 'desc');
            }}
          />
        )}
        <Pager
          pages={{
            back: first === 0 ? undefined : () => goTo(first - PAGE_ROWS),
            next: first + PAGE_ROWS >= rows.length ? undefined : () => goTo(first + PAGE_ROWS),
          }}
          shown={`${count(first + 1)} to ${count(Math.min(first + PAGE_ROWS, rows.length))} of ${count(rows.length)}`}
        />
      </Card>
    </>
  );
}

/** The columns, with a box before each name. */
function columnsToChoose(
  chosen: ReadonlySet<string>,
  choose: (names: readonly string[], isChosen: boolean) => void,
): readonly Column<Crawler>[] {
  return crawlerColumns.map((column) =>
    column.id === 'name'
      ? {
          ...column,
          cell: (crawler: Crawler) => (
            <div class="choosable">
              <input
                type="checkbox"
                aria-label={`Choose ${crawler.name}`}
                checked={chosen.has(crawler.name)}
                onInput={(event) => choose([crawler.name], event.currentTarget.checked)}
              />
              <div>{column.cell(crawler)}</div>
            </div>
          ),
        }
      : column,
  );
}

function Totals({ crawlers }: { readonly crawlers: readonly Crawler[] }) {
  const sum = (pick: (crawler: Crawler) => bigint | number | undefined): number =>
    crawlers.reduce((all, crawler) => all + Number(pick(crawler) ?? 0), 0);
  const attention = crawlers.filter(isAttention).length;
  return (
    <Figures
      items={[
        { name: 'Waiting', value: count(sum((each) => each.activity?.waiting)) },
        {
          name: 'Being crawled',
          value: count(sum((each) => each.activity?.running)),
          of: `of ${count(sum((each) => each.concurrency))}`,
        },
        { name: 'Retrying', value: count(sum((each) => each.activity?.retrying)) },
        {
          name: 'Deliveries due',
          value: count(sum((each) => each.activity?.deliveriesPending)),
        },
        {
          name: 'Need attention',
          value: count(attention),
          kind: attention > 0 ? 'bad' : undefined,
        },
      ]}
    />
  );
}

function isWanted(crawler: Crawler, text: string, filter: string): boolean {
  if (!crawler.name.toLowerCase().includes(text.trim().toLowerCase())) return false;
  if (filter === 'active') return Number(crawler.activity?.running ?? 0) > 0;
  if (filter === 'paused') return crawler.pausedBy !== undefined;
  return filter !== 'attention' || isAttention(crawler);
}
