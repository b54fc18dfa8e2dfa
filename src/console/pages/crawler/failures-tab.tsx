import { useSignal } from '@preact/signals';
import {
  type FailureGroup,
  FailureKind,
  JobState,
  MatchAction,
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
import { MatchDialog, type OfferedAction } from './match-actions.tsx';
import { filterOf } from './match-filter.tsx';

const KIND_OF = {
  crawl: FailureKind.CRAWL,
  retry: FailureKind.RETRY,
  delivery: FailureKind.DELIVERY,
};
type Kind = keyof typeof KIND_OF;

/** What can be done with a group, and what it consists of. */
const OFFERED: Readonly<Record<Kind, OfferedAction & { readonly what: string }>> = {
  crawl: {
    what: 'failed crawls',
    action: MatchAction.PUSH_AGAIN,
    verb: 'Push again',
    effect: 'They are pushed again, as they were pushed. One that was pushed again before is not.',
  },
  retry: {
    what: 'jobs',
    action: MatchAction.REMOVE_JOBS,
    verb: 'Remove',
    effect: 'They are not crawled, and have no result.',
    jobState: JobState.RETRYING,
  },
  delivery: {
    what: 'deliveries',
    action: MatchAction.REPLAY,
    verb: 'Replay',
    effect: 'They are sent again. Each attempt counts as billed.',
  },
};

/** Why crawls and deliveries failed of late, by reason, with examples. */
export function FailuresTab({ view }: { readonly view: CrawlerView }) {
  const { crawler, type } = view;
  const { postsToCallback } = deliveryOf(crawler);
  const asked = useSignal<FailureGroup | undefined>(undefined);
  const kinds: (readonly [Kind, string])[] = [
    ['crawl', 'Crawls'],
    ['retry', 'Waiting for a retry'],
  ];
  if (postsToCallback) kinds.push(['delivery', 'Deliveries']);
  const kind = queryField(
    'kind',
    kinds.map(([value]) => value),
    'crawl',
  );
  const { data, fault, refresh } = useFeed({
    key: `failures ${crawler.name} ${kind.value}`,
    changes: view.changes,
    poll: (signal) =>
      clientsFor(type).activity.listFailures(
        { name: crawler.name, kind: KIND_OF[kind.peek()] },
        { signal },
      ),
  });
  const { what, ...offered } = OFFERED[kind.value];
  const filter =
    asked.value && filterOf(new URLSearchParams(filterTextOf(kind.value, asked.value)));
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
              key={`${group.reason} ${group.cbStatus} ${group.originalStatus}`}
              group={group}
              list={`/crawlers/${crawler.name}/${listOf(kind.value, postsToCallback)}&${filterTextOf(kind.value, group)}`}
              verb={offered.verb}
              onAct={() => {
                asked.value = group;
              }}
            />
          ))}
        </div>
      )}
      {filter !== undefined && filter.fault === undefined && (
        <MatchDialog
          crawler={crawler.name}
          type={type}
          what={what}
          filter={filter}
          offered={offered}
          onEnd={() => {
            refresh();
            view.refresh();
          }}
          onClose={() => {
            asked.value = undefined;
          }}
        />
      )}
    </Card>
  );
}

/** The list with the failures of that kind. */
function listOf(kind: Kind, postsToCallback: boolean): string {
  if (kind === 'retry') return 'jobs?state=retrying';
  return kind === 'delivery' || postsToCallback ? 'deliveries?state=' : 'results?outcome=failed';
}

/** The filter that selects a group, as addresses have it. */
function filterTextOf(kind: Kind, { reason, cbStatus, originalStatus }: FailureGroup): string {
  const ended = { cb: String(cbStatus), site: String(originalStatus) };
  return new URLSearchParams({ reason, ...(kind === 'crawl' ? ended : {}) }).toString();
}

function Group({
  group,
  list,
  verb,
  onAct,
}: {
  readonly group: FailureGroup;
  readonly list: string;
  readonly verb: string;
  readonly onAct: () => void;
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
      {/* Without a reason the filter would select others as well. */}
      {reason !== '' && (
        <Button small opensDialog label={`${verb}: ${reason}`} onClick={onAct}>
          {verb}…
        </Button>
      )}
    </div>
  );
}
