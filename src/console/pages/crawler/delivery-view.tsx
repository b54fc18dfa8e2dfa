import {
  type Delivery,
  DeliveryState,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { LocalTime, Moment } from '../../format/moment.tsx';
import { count, duration } from '../../format/numbers.ts';
import { Link } from '../../shell/route.tsx';
import { Facts } from '../../ui/card.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { Empty } from '../../ui/notice.tsx';

/** Where a delivery stands. */
export function DeliveryStateBadge({ delivery }: { readonly delivery: Delivery }) {
  switch (delivery.state) {
    case DeliveryState.DELIVERED:
      return <span class="badge ok">Delivered</span>;
    case DeliveryState.FAILED:
      return <span class="badge bad">Given up</span>;
    default:
      return (
        <span>
          <span class="badge warn">Pending</span>{' '}
          <span class="small muted">
            <Moment at={delivery.nextAttemptAt} none="" past="due" />
          </span>
        </span>
      );
  }
}

/** What is delivered, and where that stands. */
export function DeliveryFacts({ delivery }: { readonly delivery: Delivery }) {
  return (
    <Facts
      items={[
        ['URL', delivery.url],
        ['rid', <Link to={`/jobs/${delivery.rid}`}>{delivery.rid}</Link>],
        ['State', <DeliveryStateBadge delivery={delivery} />],
        ['Crawl', `cb_status ${delivery.cbStatus}, site ${delivery.originalStatus || 'silent'}`],
        ...(delivery.metadata === undefined
          ? []
          : [['Metadata', <code>{delivery.metadata}</code>] as const]),
      ]}
    />
  );
}

/** Every attempt of one delivery. */
export function AttemptList({ delivery }: { readonly delivery: Delivery }) {
  return (
    <div class="stack">
      <DeliveryFacts delivery={delivery} />
      {delivery.attempts.length === 0 ? (
        <Empty title="It was not sent yet" />
      ) : (
        <DataTable
          label="Attempts"
          rows={[...delivery.attempts].reverse()}
          keyOf={({ attempt }) => String(attempt)}
          columns={[
            { id: 'number', title: 'Attempt', number: true, cell: (each) => count(each.attempt) },
            { id: 'at', title: 'When', cell: (each) => <LocalTime at={each.startedAt} /> },
            {
              id: 'status',
              title: 'Answer',
              cell: (each) => (
                <span class={`badge ${each.error === '' ? 'ok' : 'bad'}`}>
                  {each.status === 0 ? 'none' : each.status}
                </span>
              ),
            },
            { id: 'took', title: 'Took', number: true, cell: (each) => duration(each.durationMs) },
            {
              id: 'error',
              title: 'Error',
              whole: true,
              cell: ({ error, answer }) => (
                <>
                  {error || '–'}
                  {answer !== undefined && <pre class="code wrap">{answer}</pre>}
                </>
              ),
            },
          ]}
        />
      )}
    </div>
  );
}
