import { useSignal } from '@preact/signals';
import type { ProxyPool } from '../../../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { accountClients } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { useCommands } from '../../shell/commands.ts';
import { query, setQuery } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { countColumn, DataTable } from '../../ui/data-table.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Empty, FaultNotice, Loading } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { PoolDialog } from './pool-dialog.tsx';
import { ProxyTable } from './proxy-tables.tsx';

/** The pools of proxies that the account has made. */
export function ProxiesPage() {
  /** The pool that is changed; `''` for a new one. */
  const edited = useSignal<string | undefined>(undefined);
  const feed = useFeed({
    key: 'pools',
    everyMs: 30_000,
    poll: async (signal) => (await accountClients().proxies.listProxyPools({}, { signal })).pools,
  });
  const shown = query.value.get('pool') ?? '';
  const make = (): void => {
    edited.value = '';
  };
  useCommands([{ title: 'New pool of proxies', keys: 'n', run: make }]);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Proxies</h1>
          <p>Pools of your own. Crawlers and pushes choose them by name or country.</p>
        </div>
        <Button kind="primary" opensDialog onClick={make}>
          <Icon name="add" size={16} /> New pool
        </Button>
      </div>
      <Card flush>
        {feed.data === undefined ? (
          <Loading fault={feed.fault} />
        ) : feed.data.length === 0 ? (
          <Empty title="No pool of your own yet">
            <p>Pools that the operator has set up can be used without one.</p>
          </Empty>
        ) : (
          <PoolTable
            pools={feed.data}
            onEdit={(name) => {
              edited.value = name;
            }}
            onRemoved={feed.refresh}
          />
        )}
      </Card>
      {shown !== '' && <PoolCard key={shown} name={shown} />}
      {edited.value !== undefined && (
        <PoolDialog
          pool={feed.data?.find(({ name }) => name === edited.value)}
          onClose={() => {
            edited.value = undefined;
            feed.refresh();
          }}
        />
      )}
    </>
  );
}

function PoolTable(props: {
  readonly pools: readonly ProxyPool[];
  readonly onEdit: (name: string) => void;
  readonly onRemoved: () => void;
}) {
  return (
    <DataTable
      label="Pools"
      rows={props.pools}
      keyOf={({ name }) => name}
      columns={[
        { id: 'name', title: 'Name', whole: true, cell: ({ name }) => <b>{name}</b> },
        { id: 'kind', title: 'Kind', cell: ({ gateway }) => (gateway ? 'gateway' : 'list') },
        countColumn<ProxyPool>('Proxies', ({ proxyCount }) => proxyCount),
        {
          id: 'countries',
          title: 'Countries',
          cell: ({ countries }) => (countries.length === 0 ? '–' : countries.join(', ')),
        },
        { id: 'changed', title: 'Changed', cell: ({ updatedAt }) => <Moment at={updatedAt} /> },
        {
          id: 'actions',
          title: '',
          cell: ({ name }) => (
            <div class="row end">
              <Button
                small
                label={`Show the proxies of ${name}`}
                onClick={() => setQuery('pool', name)}
              >
                Show
              </Button>
              <Button small opensDialog label={`Change ${name}`} onClick={() => props.onEdit(name)}>
                Change
              </Button>
              <AskingButton
                small
                text="Delete"
                label={`Delete ${name}`}
                question={`Delete the pool ${name}?`}
                verb="Delete"
                perform={async () => {
                  await accountClients().proxies.deleteProxyPool({ name });
                  setQuery('pool', '');
                  toast(`${name} is deleted.`);
                  props.onRemoved();
                }}
              >
                <p>URLs that need it fail, unless the operator has a pool of this name.</p>
              </AskingButton>
            </div>
          ),
        },
      ]}
    />
  );
}

/** The proxies of one pool, as the answering process knows them. */
function PoolCard({ name }: { readonly name: string }) {
  const { data, fault } = useFeed({
    key: `pool ${name}`,
    poll: async (signal) =>
      (await accountClients().proxies.getProxyPool({ name }, { signal })).pool,
  });
  return (
    <Card title={`Proxies of ${name}`} flush>
      <FaultNotice fault={fault} />
      {data !== undefined && <ProxyTable proxies={data.proxies.slice(0, MAX_ROWS)} />}
      {data !== undefined && data.proxies.length > MAX_ROWS && (
        <p class="muted small">The first {MAX_ROWS}. GetProxyPool has all of them.</p>
      )}
    </Card>
  );
}

const MAX_ROWS = 100;
