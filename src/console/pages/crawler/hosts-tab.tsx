import { useSignal } from '@preact/signals';
import {
  type Host,
  HostOrder,
  type HostWait,
  HostWaitKind,
} from '../../../../gen/queuedcrawler/v1/host_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { count, duration, rate } from '../../format/numbers.ts';
import { query, queryField, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { countColumn, DataTable } from '../../ui/data-table.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Empty, FaultNotice, Loading } from '../../ui/notice.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast } from '../../ui/toasts.tsx';
import type { CrawlerView } from './crawler-page.tsx';

const ORDER_OF = {
  queued: HostOrder.QUEUED,
  slowest: HostOrder.SLOWEST,
  failed: HostOrder.FAILED,
  rate: HostOrder.RATE,
};
const ORDERS = [
  ['queued', 'Most waiting'],
  ['slowest', 'Slowest'],
  ['failed', 'Most failed'],
  ['rate', 'Busiest'],
] as const;
const MAX_ROWS = 100;
const order = queryField(
  'order',
  ORDERS.map(([name]) => name),
  'queued',
);

const isPaused = ({ wait }: Host): boolean => wait?.kind === HostWaitKind.PAUSED;

/** The hosts of a crawler: what they wait for, how they answer, and what can be done about it. */
export function HostsTab({ view }: { readonly view: CrawlerView }) {
  const { name } = view.crawler;
  const clients = clientsFor(view.type);
  const contains = query.value.get('host') ?? '';
  const purging = useSignal<Host | undefined>(undefined);
  const { data, fault, refresh } = useFeed({
    key: `hosts ${name} ${order.value} ${contains}`,
    changes: view.changes,
    poll: (signal) =>
      clients.hosts.listHosts(
        {
          name,
          orderBy: ORDER_OF[order.peek()],
          hostContains: contains,
          // One more tells that there are others.
          maxCount: MAX_ROWS + 1,
        },
        { signal },
      ),
  });
  const toggle = useAction(async (row: Host) => {
    const { host } = row;
    if (isPaused(row)) await clients.hosts.unpauseHost({ name, host });
    else await clients.hosts.pauseHost({ name, host });
    toast(isPaused(row) ? `${host} is crawled again.` : `${host} is paused; its URLs wait.`);
    refresh();
  });
  const asked = purging.value;
  const close = () => {
    purging.value = undefined;
  };
  return (
    <Card
      flush
      title={
        data === undefined ? 'Hosts' : `Hosts with URLs in the queue: ${count(data.queuedHosts)}`
      }
      actions={
        <>
          <div class="search">
            <Icon name="find" size={16} />
            <input
              class="input"
              type="search"
              aria-label="Find a host"
              placeholder="Find a host"
              value={contains}
              onInput={({ currentTarget }) => setQuery('host', currentTarget.value)}
            />
          </div>
          <Segments
            label="Order"
            value={order.value}
            options={ORDERS}
            onPick={(picked) => {
              order.value = picked;
            }}
          />
        </>
      }
    >
      <FaultNotice fault={toggle.fault} />
      {data === undefined ? (
        <Loading fault={fault} />
      ) : data.hosts.length === 0 ? (
        contains === '' ? (
          <Empty title="No hosts">
            <p>Hosts are listed while they have URLs in the queue, and a day after.</p>
          </Empty>
        ) : (
          <Empty title="Nothing matches the filter" />
        )
      ) : (
        <>
          {data.hosts.length > MAX_ROWS && (
            <p class="card-part muted small">
              Only the first {count(MAX_ROWS)} hosts are shown. Others are found by their name.
            </p>
          )}
          <DataTable
            label="Hosts"
            rows={data.hosts.slice(0, MAX_ROWS)}
            keyOf={({ host }) => host}
            columns={[
              {
                id: 'host',
                title: 'Host',
                grow: true,
                whole: true,
                cell: ({ host }) => (
                  <span class="clip" title={host}>
                    {host}
                  </span>
                ),
              },
              { id: 'wait', title: 'Waits for', cell: ({ wait }) => <WaitBadge wait={wait} /> },
              {
                id: 'queued',
                title: 'Queued',
                number: true,
                cell: ({ queued }) => (queued === undefined ? '–' : count(queued)),
              },
              countColumn<Host>('Running', ({ running }) => running),
              countColumn<Host>('Tries', ({ tries }) => tries),
              {
                id: 'failed',
                title: 'Failed',
                number: true,
                cell: ({ failed, failures: [first] }) => (
                  <span title={first?.reason.replaceAll('_', ' ')}>{count(failed)}</span>
                ),
              },
              {
                id: 'mean',
                title: 'Mean time',
                number: true,
                cell: ({ tries, meanMs }) => (tries === 0n ? '–' : duration(meanMs)),
              },
              {
                id: 'rate',
                title: 'Rate',
                number: true,
                cell: ({ perSecond }) => rate(perSecond),
              },
              { id: 'last', title: 'Last try', cell: ({ lastTryAt }) => <Moment at={lastTryAt} /> },
              {
                id: 'act',
                title: '',
                cell: (row) => (
                  <span class="row tight">
                    <Button
                      small
                      label={`${isPaused(row) ? 'Unpause' : 'Pause'} ${row.host}`}
                      onClick={() => void toggle.run(row)}
                    >
                      {isPaused(row) ? 'Unpause' : 'Pause'}
                    </Button>
                    <Button
                      small
                      kind="plain"
                      class="bad-text"
                      opensDialog
                      label={`Purge ${row.host}`}
                      onClick={() => {
                        purging.value = row;
                      }}
                    >
                      Purge…
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        </>
      )}
      {asked !== undefined && (
        <ConfirmByName
          title={`Purge ${asked.host}`}
          name={asked.host}
          verb="Purge"
          onClose={close}
          perform={async () => {
            const { purged, hasMore } = await clients.hosts.purgeHost({ name, host: asked.host });
            close();
            toast(`Removed ${count(purged)} URLs${hasMore ? '; some are left' : ''}.`);
            refresh();
            view.refresh();
          }}
        >
          <p>
            Removes all URLs of this host that wait, retries included. What is being crawled
            finishes.
          </p>
        </ConfirmByName>
      )}
    </Card>
  );
}

/** What URLs of a host wait for. */
export function WaitBadge({ wait }: { readonly wait: HostWait | undefined }) {
  if (wait === undefined) return <span class="muted">–</span>;
  const { kind, reason, until } = wait;
  switch (kind) {
    case HostWaitKind.PAUSED:
      return <span class="badge warn">{reason === 'rule' ? 'paused by a rule' : 'paused'}</span>;
    case HostWaitKind.AWAY:
      return (
        <span class="badge bad" title="The host is not reached. One URL is tried then.">
          <span>
            {reason.replaceAll('_', ' ')}, tried <Moment at={until} past="now" />
          </span>
        </span>
      );
    case HostWaitKind.SLOW:
      return (
        <span class="badge warn" title="The host asked for fewer requests.">
          <span>
            asks for less, next <Moment at={until} past="now" />
          </span>
        </span>
      );
    default:
      return <span class="badge">its pace</span>;
  }
}
