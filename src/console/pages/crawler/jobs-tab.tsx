import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  JobState,
  MatchAction,
  type QueuedJob,
  QueuedJobSchema,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { Link, queryField } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/notice.tsx';
import { PagedTable, urlColumn } from '../../ui/paged-table.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast } from '../../ui/toasts.tsx';
import { usePages } from '../../ui/use-pages.ts';
import type { CrawlerView } from './crawler-page.tsx';
import { WaitBadge } from './hosts-tab.tsx';
import { MatchActions } from './match-actions.tsx';
import { addressFilter, FilterBar, NO_ROWS, NoMatches } from './match-filter.tsx';

const STATES = [
  ['', 'All'],
  ['waiting', 'Waiting'],
  ['retrying', 'Retrying'],
  ['scheduled', 'Scheduled'],
] as const;
const STATE_OF = {
  '': JobState.UNSPECIFIED,
  waiting: JobState.WAITING,
  retrying: JobState.RETRYING,
  scheduled: JobState.SCHEDULED,
};

const FIELDS = [
  'rid',
  'url',
  'state',
  'tries',
  'last_failure',
  'pushed_at',
  'next_try_at',
  'batch',
  'priority',
  'metadata',
] as const;

/** When a job is tried at the earliest: when it is due, and its host takes another request. */
function nextTry({ nextTryAt, hostWait }: QueuedJob): Timestamp | undefined {
  const hostAt = hostWait?.until;
  if (nextTryAt === undefined || hostAt === undefined) return nextTryAt;
  return timestampMs(hostAt) > timestampMs(nextTryAt) ? hostAt : nextTryAt;
}

/** What waits in a crawler's queue, earliest due first. */
export function JobsTab({ view }: { readonly view: CrawlerView }) {
  const { crawler, type } = view;
  const state = queryField(
    'state',
    STATES.map(([value]) => value),
    '',
  );
  const clients = clientsFor(type);
  const filter = addressFilter();
  const read = async (pageToken: string, pageSize: number, signal?: AbortSignal) => {
    if (filter.fault !== undefined) return NO_ROWS;
    const selection = { state: STATE_OF[state.value], filter: filter.message };
    const { jobs: rows, nextPageToken } = await clients.activity.listJobs(
      { name: crawler.name, ...selection, pageSize, pageToken },
      signal && { signal },
    );
    return { rows, nextPageToken };
  };
  const pages = usePages(`jobs ${crawler.name} ${state.value} ${filter.key}`, read, view.changes);
  const remove = async ({ rid, url }: QueuedJob): Promise<void> => {
    await clients.crawlers.deleteJob({ name: crawler.name, rid });
    toast(`Removed ${url}`);
    pages.refresh();
    view.refresh();
  };
  const { waiting = 0n, retrying = 0n } = crawler.activity ?? {};
  return (
    <Card
      flush
      title="Queue"
      actions={
        <Segments
          label="Jobs"
          value={state.value}
          options={STATES}
          onPick={(picked) => {
            state.value = picked;
          }}
        />
      }
    >
      <div class="card-part">
        <FilterBar isOfJobs />
        <MatchActions
          crawler={crawler.name}
          type={type}
          what="jobs"
          actions={[
            {
              action: MatchAction.REMOVE_JOBS,
              verb: 'Remove',
              effect: 'They are not crawled, and have no result.',
              jobState: STATE_OF[state.value],
            },
          ]}
          fields={FIELDS}
          desc={QueuedJobSchema}
          read={read}
          onEnd={() => {
            pages.refresh();
            view.refresh();
          }}
        />
      </div>
      <PagedTable
        label="Jobs"
        pages={pages}
        isWrong={filter.fault !== undefined}
        total={state.value === '' && filter.key === '' ? Number(waiting + retrying) : undefined}
        empty={
          filter.key === '' ? (
            <Empty title="Nothing waits">
              <p>
                {waiting + retrying === 0n
                  ? 'The queue is empty.'
                  : `${count(waiting)} wait and ${count(retrying)} are retried, none of this kind.`}
              </p>
              <Link to={`/crawlers/${crawler.name}/push`} class="button">
                Push URLs
              </Link>
            </Empty>
          ) : (
            <NoMatches filter={filter} />
          )
        }
        columns={[
          urlColumn('url'),
          {
            id: 'state',
            title: 'State',
            cell: ({ state: each, hostWait }) =>
              hostWait !== undefined ? (
                <WaitBadge wait={hostWait} />
              ) : each === JobState.RETRYING ? (
                <span class="badge warn">retrying</span>
              ) : each === JobState.SCHEDULED ? (
                <span class="badge">scheduled</span>
              ) : (
                <span class="badge">waiting</span>
              ),
          },
          { id: 'tries', title: 'Tries', number: true, cell: ({ tries }) => count(tries) },
          {
            id: 'failure',
            title: 'Last failure',
            cell: ({ lastFailure }) => lastFailure?.replaceAll('_', ' ') ?? '–',
          },
          { id: 'next', title: 'Next try', cell: (job) => <Moment at={nextTry(job)} past="due" /> },
          { id: 'pushed', title: 'Pushed', cell: ({ pushedAt }) => <Moment at={pushedAt} /> },
          {
            id: 'remove',
            title: '',
            cell: (job) => (
              <AskingButton
                small
                text="Remove"
                label={`Remove ${job.url}`}
                question="Remove this URL from the queue?"
                verb="Remove"
                perform={() => remove(job)}
              >
                <p class="break">{job.url}</p>
                <p>It is not crawled, and has no result.</p>
              </AskingButton>
            ),
          },
        ]}
      />
    </Card>
  );
}
