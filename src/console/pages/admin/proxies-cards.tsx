import type { Proxy, ProxyHost } from '../../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { bytes, count } from '../../format/numbers.ts';
import { Card } from '../../ui/card.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { FaultNotice } from '../../ui/notice.tsx';

/** Most rows of each table. */
const MAX_ROWS = 50;

/** The proxies and what was crawled through them, as the answering process knows it; nothing without pools. */
export function ProxiesCards() {
  const { data, fault } = useFeed({
    key: 'proxies',
    poll: (signal) => operatorClients().operator.listProxies({}, { signal }),
  });
  if (data === undefined) return <FaultNotice fault={fault} />;
  if (data.totalCount === 0) return <></>;
  const left = data.totalCount - Math.min(data.proxies.length, MAX_ROWS);
  return (
    <>
      <FaultNotice fault={fault} />
      <Card title="Proxies" flush>
        <ProxyTable proxies={data.proxies.slice(0, MAX_ROWS)} />
        {left > 0 && (
          <p class="muted small">
            {count(left)} more, none of them in more trouble. The metrics and ListProxies have them.
          </p>
        )}
      </Card>
      {data.hosts.length > 0 && (
        <Card title="Hosts through proxies" flush>
          <HostTable hosts={data.hosts.slice(0, MAX_ROWS)} />
        </Card>
      )}
    </>
  );
}

function ProxyTable({ proxies }: { readonly proxies: readonly Proxy[] }) {
  return (
    <DataTable
      label="Proxies"
      rows={proxies}
      keyOf={({ pool, proxy }) => `${pool} ${proxy}`}
      columns={[
        { id: 'proxy', title: 'Proxy', whole: true, cell: ({ proxy }) => <b>{proxy}</b> },
        { id: 'pool', title: 'Pool', cell: ({ pool }) => pool },
        {
          id: 'state',
          title: 'State',
          cell: ({ trouble, retryAt }) =>
            trouble === undefined ? (
              'usable'
            ) : (
              <>
                <span class="badge warn">{trouble.replaceAll('_', ' ')}</span> until{' '}
                <Moment at={retryAt} />
              </>
            ),
        },
        number('Pages', ({ pages }: Proxy) => pages),
        number('Blocks', ({ blocks }: Proxy) => blocks),
        number('Failures', ({ failures }: Proxy) => failures),
        size('Received', ({ receivedBytes }: Proxy) => receivedBytes),
        size('Sent', ({ sentBytes }: Proxy) => sentBytes),
        {
          id: 'blocked',
          title: 'Blocked at',
          cell: ({ blockedAt }) => (blockedAt.length === 0 ? '–' : blockedAt.join(', ')),
        },
      ]}
    />
  );
}

function HostTable({ hosts }: { readonly hosts: readonly ProxyHost[] }) {
  return (
    <DataTable
      label="Hosts through proxies"
      rows={hosts}
      keyOf={({ pool, host }) => `${pool} ${host}`}
      columns={[
        { id: 'host', title: 'Host', whole: true, cell: ({ host }) => <b>{host}</b> },
        { id: 'pool', title: 'Pool', cell: ({ pool }) => pool },
        number('Pages', ({ pages }: ProxyHost) => pages),
        number('Blocks', ({ blocks }: ProxyHost) => blocks),
        number('Failures', ({ failures }: ProxyHost) => failures),
        size('Bytes', (each: ProxyHost) => each.bytes),
      ]}
    />
  );
}

function number<Row>(title: string, pick: (row: Row) => bigint) {
  return { id: title, title, number: true, cell: (row: Row) => count(pick(row)) };
}

function size<Row>(title: string, pick: (row: Row) => bigint) {
  return {
    id: title,
    title,
    number: true,
    cell: (row: Row) => <span class="nowrap">{bytes(Number(pick(row)))}</span>,
  };
}
