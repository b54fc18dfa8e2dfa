import type { Proxy, ProxyHost } from '../../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { Moment } from '../../format/moment.tsx';
import { bytes, count } from '../../format/numbers.ts';
import { countColumn, DataTable } from '../../ui/data-table.tsx';

/** Proxies, and what was crawled through each. */
export function ProxyTable({ proxies }: { readonly proxies: readonly Proxy[] }) {
  return (
    <DataTable
      label="Proxies"
      rows={proxies}
      // Several users of one proxy look the same.
      keyOf={(proxy) => String(proxies.indexOf(proxy))}
      columns={[
        { id: 'proxy', title: 'Proxy', whole: true, cell: ({ proxy }) => <b>{proxy}</b> },
        { id: 'pool', title: 'Pool', cell: ({ pool }) => pool },
        {
          id: 'state',
          title: 'State',
          cell: ({ trouble, retryAt, lastFailure }) =>
            trouble === undefined ? (
              'usable'
            ) : (
              <>
                <span class="badge warn" title={lastFailure}>
                  {trouble.replaceAll('_', ' ')}
                </span>{' '}
                until <Moment at={retryAt} />
              </>
            ),
        },
        countColumn('Pages', ({ pages }: Proxy) => pages),
        countColumn('Blocks', ({ blocks }: Proxy) => blocks),
        countColumn('Failures', ({ failures }: Proxy) => failures),
        size('Received', ({ receivedBytes }: Proxy) => receivedBytes),
        size('Sent', ({ sentBytes }: Proxy) => sentBytes),
        {
          id: 'blocked',
          title: 'Blocked at',
          cell: ({ blockedAt }) => (blockedAt.length === 0 ? '–' : blockedAt.join(', ')),
        },
        {
          id: 'hosts',
          title: 'Hosts with the most bytes',
          cell: ({ hosts }) => (hosts.length === 0 ? '–' : <TopHosts hosts={hosts} />),
        },
      ]}
    />
  );
}

function TopHosts({ hosts }: { readonly hosts: readonly ProxyHost[] }) {
  return (
    <div class="small">
      {hosts.map((each) => (
        <div key={each.host}>
          {each.host}: {bytes(Number(each.bytes))}, {count(each.pages)} pages, {count(each.blocks)}{' '}
          blocks
        </div>
      ))}
    </div>
  );
}

/** Hosts, and what was crawled through the proxies of each pool. */
export function HostTable({ hosts }: { readonly hosts: readonly ProxyHost[] }) {
  return (
    <DataTable
      label="Hosts through proxies"
      rows={hosts}
      keyOf={({ pool, host }) => `${pool} ${host}`}
      columns={[
        { id: 'host', title: 'Host', whole: true, cell: ({ host }) => <b>{host}</b> },
        { id: 'pool', title: 'Pool', cell: ({ pool }) => pool },
        countColumn('Pages', ({ pages }: ProxyHost) => pages),
        countColumn('Blocks', ({ blocks }: ProxyHost) => blocks),
        countColumn('Failures', ({ failures }: ProxyHost) => failures),
        size('Bytes', (each: ProxyHost) => each.bytes),
      ]}
    />
  );
}

function size<Row>(title: string, pick: (row: Row) => bigint) {
  return {
    id: title,
    title,
    number: true,
    cell: (row: Row) => <span class="nowrap">{bytes(Number(pick(row)))}</span>,
  };
}
