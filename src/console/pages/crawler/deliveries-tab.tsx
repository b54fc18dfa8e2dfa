import { useSignal } from '@preact/signals';
import { MatchAction } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  type Delivery,
  DeliverySchema,
  DeliveryState,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { query, queryField, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { countColumn } from '../../ui/data-table.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty, FaultNotice, Loading } from '../../ui/notice.tsx';
import { PagedTable, urlColumn } from '../../ui/paged-table.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast } from '../../ui/toasts.tsx';
import { usePages } from '../../ui/use-pages.ts';
import { StatusBadge } from '../results/status-badge.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { AttemptList, DeliveryStateBadge } from './delivery-view.tsx';
import { MatchActions } from './match-actions.tsx';
import { addressFilter, FilterBar, NO_ROWS, NoMatches } from './match-filter.tsx';

const STATE_OF = {
  '': DeliveryState.UNSPECIFIED,
  pending: DeliveryState.PENDING,
  failed: DeliveryState.FAILED,
  delivered: DeliveryState.DELIVERED,
};
type State = keyof typeof STATE_OF;
const STATES: readonly (readonly [State, string])[] = [
  ['', 'All'],
  ['pending', 'Pending'],
  ['failed', 'Failed'],
  ['delivered', 'Delivered'],
];

const FIELDS = [
  'rid',
  'pushed_url',
  'url',
  'state',
  'cb_status',
  'original_status',
  'failure',
  'created_at',
  'next_attempt_at',
  'attempts',
  'batch',
  'metadata',
] as const;

/** The deliveries of a crawler with every attempt, and how they are made again. */
export function DeliveriesTab({ view }: { readonly view: CrawlerView }) {
  const { name } = view.crawler;
  const state = queryField(
    'state',
    STATES.map(([value]) => value),
    '',
  );
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const open = query.value.get('delivery') ?? '';
  const clients = clientsFor(view.type);
  const filter = addressFilter();
  const read = async (pageToken: string, pageSize: number, signal?: AbortSignal) => {
    if (filter.fault !== undefined) return NO_ROWS;
    const { deliveries: rows, nextPageToken } = await clients.activity.listDeliveries(
      { name, state: STATE_OF[state.value], filter: filter.message, pageSize, pageToken },
      signal && { signal },
    );
    return { rows, nextPageToken };
  };
  const pages = usePages(`deliveries ${name} ${state.value} ${filter.key}`, read, view.changes);
  const replay = useAction(async (rids: readonly string[]) => {
    const { replayed } = await clients.crawlers.replayDeliveries(
      rids.length === 1 ? { name, rid: rids[0] ?? '' } : { name, rids: [...rids] },
    );
    toast(`Queued for replay: ${count(replayed)}.`);
    chosen.value = new Set();
    pages.refresh();
  });
  const test = useAction(async () => {
    const { acknowledged, attempt } = await clients.crawlers.testDelivery({ name });
    const answer = attempt?.status === 0 ? attempt.error : `status ${attempt?.status}`;
    if (acknowledged)
      toast(`The callback URL acknowledged it: ${answer}, ${attempt?.durationMs} ms.`);
    else toast(`The callback URL did not acknowledge it: ${attempt?.error || answer}.`, 'bad');
  });
  const rows = pages.data?.rows ?? [];
  return (
    <Card
      flush
      title="Deliveries"
      actions={
        <div class="row">
          <Segments
            label="Deliveries"
            value={state.value}
            options={STATES}
            onPick={(picked) => {
              state.value = picked;
              chosen.value = new Set();
            }}
          />
          {chosen.value.size > 0 && (
            <Button small busy={replay.busy} onClick={() => void replay.run([...chosen.value])}>
              Replay {count(chosen.value.size)}
            </Button>
          )}
          <Button small busy={test.busy} onClick={() => void test.run()}>
            Send a test
          </Button>
        </div>
      }
    >
      <FaultNotice fault={replay.fault ?? test.fault} />
      <div class="card-part">
        <FilterBar />
        <MatchActions
          crawler={name}
          type={view.type}
          what="deliveries"
          actions={[
            {
              action: MatchAction.REPLAY,
              verb: 'Replay',
              effect: 'They are sent again. Each attempt counts as billed.',
              hasRanges: true,
              deliveryState: STATE_OF[state.value],
            },
            {
              action: MatchAction.PUSH_AGAIN,
              verb: 'Push again',
              effect: 'Failed crawls among them are pushed again, as they were pushed.',
            },
          ]}
          fields={FIELDS}
          desc={DeliverySchema}
          read={read}
          onEnd={pages.refresh}
        />
      </div>
      <PagedTable
        label="Deliveries"
        pages={pages}
        isWrong={filter.fault !== undefined}
        empty={
          filter.key === '' ? (
            <Empty title="No delivery is like that">
              <p>
                Each result that is sent to the callback URL is listed here, with every attempt.
              </p>
              <Button busy={test.busy} onClick={() => void test.run()}>
                Send a test delivery
              </Button>
            </Empty>
          ) : (
            <NoMatches filter={filter} />
          )
        }
        columns={[
          {
            id: 'choose',
            title: 'Choose',
            cell: ({ rid, url }) => (
              <input
                type="checkbox"
                aria-label={`Choose the delivery of ${url}`}
                checked={chosen.value.has(rid)}
                onInput={(event) => {
                  const next = new Set(chosen.value);
                  if (event.currentTarget.checked) next.add(rid);
                  else next.delete(rid);
                  chosen.value = next;
                }}
              />
            ),
          },
          urlColumn('url'),
          {
            id: 'state',
            title: 'Delivery',
            cell: (delivery) => <DeliveryStateBadge delivery={delivery} />,
          },
          {
            id: 'crawl',
            title: 'Crawl',
            cell: ({ cbStatus }) => <StatusBadge cbStatus={cbStatus} />,
          },
          countColumn<Delivery>('Attempts', ({ attempts }) => attempts.at(-1)?.attempt ?? 0),
          { id: 'at', title: 'Crawled', cell: ({ createdAt }) => <Moment at={createdAt} /> },
          {
            id: 'actions',
            title: '',
            cell: (delivery) => (
              <span class="row tight">
                <Button
                  small
                  opensDialog
                  label={`Attempts of ${delivery.url}`}
                  onClick={() => {
                    setQuery('delivery', delivery.rid);
                  }}
                >
                  Attempts
                </Button>
                <Button
                  small
                  label={`Replay ${delivery.url}`}
                  onClick={() => void replay.run([delivery.rid])}
                >
                  Replay
                </Button>
              </span>
            ),
          },
        ]}
      />
      {open !== '' && (
        <AttemptsDialog
          view={view}
          rid={open}
          listed={rows.find(({ rid }) => rid === open)}
          onClose={() => setQuery('delivery', '')}
        />
      )}
    </Card>
  );
}

/** The attempts of one delivery, of which the list may show another page. */
function AttemptsDialog(props: {
  readonly view: CrawlerView;
  readonly rid: string;
  readonly listed: Delivery | undefined;
  readonly onClose: () => void;
}) {
  const { view, rid } = props;
  const { name } = view.crawler;
  const { data, fault } = useFeed({
    key: `delivery ${rid}`,
    poll: (signal) => clientsFor(view.type).crawlers.getDelivery({ name, rid }, { signal }),
  });
  const delivery = data?.delivery ?? props.listed;
  return (
    <Dialog title="Attempts" wide onClose={props.onClose}>
      {delivery === undefined ? <Loading fault={fault} /> : <AttemptList delivery={delivery} />}
    </Dialog>
  );
}
