import type { ServiceProcess } from '../../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { operatorClients } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { bytes, count, duration, percent } from '../../format/numbers.ts';
import { Card, Figures } from '../../ui/card.tsx';
import { countColumn, DataTable } from '../../ui/data-table.tsx';
import { FaultNotice, Loading } from '../../ui/notice.tsx';
import { LoadCharts } from './load-charts.tsx';
import { ProxiesCards } from './proxies-cards.tsx';

/** The processes of the installation and its database, for the operator. */
export function SystemPage() {
  const { data, fault } = useFeed({
    key: 'installation',
    poll: (signal) => operatorClients().operator.getInstallation({}, { signal }),
  });
  return (
    <>
      <div class="page-head">
        <div>
          <h1>System</h1>
          <p>What the service runs on, now.</p>
        </div>
        <a
          class="button"
          href="/metrics"
          target="_blank"
          rel="noopener"
          title="Text for Prometheus. It asks for METRICS_TOKEN where that is set."
        >
          Metrics
        </a>
      </div>
      {data === undefined ? (
        <Loading fault={fault} />
      ) : (
        <>
          <FaultNotice fault={fault} />
          <Figures
            items={[
              { name: 'Version', value: data.version },
              {
                name: 'Database',
                value: data.database?.kind === 'mongodb' ? 'MongoDB' : 'Embedded',
                of: data.database?.version,
              },
              { name: 'Database answers in', value: duration(data.database?.latencyMs ?? 0) },
              { name: 'Processes', value: count(data.processes.length) },
            ]}
          />
          <Card title="Processes" flush>
            <ProcessTable processes={data.processes} />
            <p class="muted small card-part">
              SIGTERM drains a process: it begins nothing new and ends what is under way; the others
              continue. The page of a crawler names the processes that work on it.
            </p>
          </Card>
          <LoadCharts data={data} />
          <ProxiesCards />
        </>
      )}
    </>
  );
}

function ProcessTable({ processes }: { readonly processes: readonly ServiceProcess[] }) {
  return (
    <DataTable
      label="Processes"
      rows={processes}
      keyOf={({ id }) => id}
      columns={[
        {
          id: 'id',
          title: 'Process',
          whole: true,
          cell: (each) => (
            <>
              <b title={each.id}>{nameOf(each)}</b>{' '}
              {each.isAnswering && <span class="badge accent">answers you</span>}
            </>
          ),
        },
        { id: 'role', title: 'Role', cell: ({ role }) => role },
        { id: 'version', title: 'Version', cell: ({ version }) => version },
        countColumn<ServiceProcess>('Crawlers', (each) => each.crawlers),
        countColumn<ServiceProcess>('Crawls', (each) => each.crawls),
        countColumn<ServiceProcess>('Deliveries', (each) => each.deliveries),
        countColumn<ServiceProcess>('Browser pages', (each) => each.browserPages),
        { id: 'cores', title: 'Cores', number: true, cell: (each) => each.cpuCores.toFixed(2) },
        {
          id: 'memory',
          title: 'Memory',
          number: true,
          cell: (each) => <span class="nowrap">{bytes(each.memoryBytes)}</span>,
        },
        {
          id: 'busy',
          title: 'Main thread busy',
          number: true,
          cell: (each) => percent(each.eventLoopUse, 1),
        },
        { id: 'started', title: 'Started', cell: (each) => <Moment at={each.startedAt} /> },
      ]}
    />
  );
}

/** Host and process id; the part behind them keeps restarts apart. */
function nameOf({ id }: ServiceProcess): string {
  return id.split(':').slice(0, 2).join(' ');
}
