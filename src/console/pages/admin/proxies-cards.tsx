import { operatorClients } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { count } from '../../format/numbers.ts';
import { Card } from '../../ui/card.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import { HostTable, ProxyTable } from '../proxies/proxy-tables.tsx';

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
