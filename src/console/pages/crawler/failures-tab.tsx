import { useSignal } from '@preact/signals';
import {
  type FailureGroup,
  FailureKind,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { Link, queryField } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty, Loading } from '../../ui/notice.tsx';
import { Segments } from '../../ui/segments.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { PushAgainDialog } from './push-again-dialog.tsx';

const KIND_OF = {
  crawl: FailureKind.CRAWL,
  retry: FailureKind.RETRY,
  delivery: FailureKind.DELIVERY,
};
type Kind = keyof typeof KIND_OF;

/** Why crawls and deliveries failed of late, by reason, with examples. */
export function FailuresTab({ view }: { readonly view: CrawlerView }) {
  const { crawler, type } = view;
  const asked = useSignal<FailureGroup | undefined>(undefined);
  const kinds: (readonly [Kind, string])[] = [
    ['crawl', 'Crawls'],
    ['retry', 'Waiting for a retry'],
  ];
  if (deliveryOf(crawler).postsToCallback) kinds.push(['delivery', 'Deliveries']);
  const kind = queryField(
    'kind',
    kinds.map(([value]) => value),
    'crawl',
  );
  const { data, fault } = useFeed({
    key: `failures ${crawler.name} ${kind.value}`,
    changes: view.changes,
    poll: (signal) =>
      clientsFor(type).activity.listFailures(
        { name: crawler.name, kind: KIND_OF[kind.peek()] },
        { signal },
      ),
  });
  return (
    <Card
      title="Failures"
      actions={
        <Segments
          label="What failed"
          value={kind.value}
          options={kinds}
          onPick={(picked) => {
            kind.value = picked;
          }}
        />
      }
    >
      {data === undefined ? (
        <Loading fault={fault} />
      ) : data.groups.length === 0 ? (
        <Empty title="No failures of this kind" />
      ) : (
        <div class="stack">
          <p class="muted small">
            Failures examined: {count(data.examined)}
            {data.hasMore ? ', the latest of more' : ''}
          </p>
          {data.groups.map((group) => (
            <Group
              key={`${group.reason} ${group.originalStatus}`}
              group={group}
              list={listOf(view, kind.value, group)}
              onPushAgain={
                kind.value === 'crawl'
                  ? () => {
                      asked.value = group;
                    }
                  : undefined
              }
            />
          ))}
        </div>
      )}
      {asked.value !== undefined && (
        <PushAgainDialog
          view={view}
          group={asked.value}
          onClose={() => {
            asked.value = undefined;
          }}
        />
      )}
    </Card>
  );
}

/** The address of the list with all failures of a group. */
function listOf({ crawler }: CrawlerView, kind: Kind, group: FailureGroup): string {
  const reason = new URLSearchParams({ reason: group.reason }).toString();
  const path = `/crawlers/${crawler.name}`;
  if (kind === 'retry') return `${path}/jobs?state=retrying&${reason}`;
  if (kind === 'delivery') return `${path}/deliveries?${reason}`;
  const ended = `${reason}&cb=${group.cbStatus}&site=${group.originalStatus}`;
  const { postsToCallback } = deliveryOf(crawler);
  return postsToCallback
    ? `${path}/deliveries?${ended}`
    : `${path}/results?outcome=failed&${ended}`;
}

function Group({
  group,
  list,
  onPushAgain,
}: {
  readonly group: FailureGroup;
  readonly list: string;
  readonly onPushAgain: (() => void) | undefined;
}) {
  const reason = group.reason.replaceAll('_', ' ');
  return (
    <div class="group">
      <details>
        <summary>
          <strong>{reason}</strong> <span class="badge bare bad">{count(group.count)}</span>{' '}
          <span class="muted small">
            {group.cbStatus !== 0 && `cb_status ${group.cbStatus} · `}
            {group.originalStatus !== 0 && `answered ${group.originalStatus} · `}
            {group.pending > 0 && `${count(group.pending)} to be tried again · `}
            latest <Moment at={group.latestAt} />
          </span>
        </summary>
        <ul class="stack tight">
          {group.examples.map(({ rid, url, at, detail }) => (
            <li key={rid} class="row spread">
              <span class="clip" title={url}>
                {url}
              </span>
              <span class="row tight small">
                {detail !== '' && <span class="muted">{detail}</span>}
                <Moment at={at} />
                <Link to={`/jobs/${rid}`}>{rid}</Link>
              </span>
            </li>
          ))}
        </ul>
        <Link to={list}>Show all of this reason</Link>
      </details>
      {onPushAgain !== undefined && (
        <Button small label={`Push again: ${reason}`} onClick={onPushAgain}>
          Push again…
        </Button>
      )}
    </div>
  );
}
