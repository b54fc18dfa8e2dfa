import { useSignal } from '@preact/signals';
import {
  type Batch,
  type BatchFailures,
  BatchState,
} from '../../../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { Moment } from '../../format/moment.tsx';
import { count, duration } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { countColumn } from '../../ui/data-table.tsx';
import { Empty, FaultNotice } from '../../ui/notice.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { toast } from '../../ui/toasts.tsx';
import { usePages } from '../../ui/use-pages.ts';
import type { CrawlerView } from './crawler-page.tsx';

/** The batches of a crawler, the newest first. */
export function BatchesTab({ view }: { readonly view: CrawlerView }) {
  const { name } = view.crawler;
  const clients = clientsFor(view.type);
  const cancelling = useSignal<string | undefined>(undefined);
  const pages = usePages(
    `batches ${name}`,
    async (pageToken, pageSize, signal) => {
      const { batches, nextPageToken } = await clients.batches.listBatches(
        { name, pageSize, pageToken },
        { signal },
      );
      return { rows: batches.map((each) => ({ ...each, rid: each.id })), nextPageToken };
    },
    view.changes,
  );
  const { refresh } = pages;
  const close = useAction(async (batch: string) => {
    await clients.batches.closeBatch({ name, batch });
    toast(`${batch} takes no further URLs.`);
    refresh();
  });
  const asked = cancelling.value;
  const leave = () => {
    cancelling.value = undefined;
  };
  return (
    <Card flush title="Batches">
      <FaultNotice fault={close.fault} />
      <PagedTable
        label="Batches"
        pages={pages}
        empty={
          <Empty title="No batches">
            <p>A push that names a batch makes it. It is kept 30 days after its end.</p>
          </Empty>
        }
        columns={[
          {
            id: 'name',
            title: 'Batch',
            grow: true,
            whole: true,
            cell: (batch) => (
              <span class="clip" title={batch.name}>
                {batch.name}
              </span>
            ),
          },
          { id: 'state', title: 'State', cell: (batch) => <StateBadge batch={batch} /> },
          { id: 'percent', title: '%', number: true, cell: ({ percent }) => percent },
          countColumn<Batch>('URLs', ({ accepted }) => accepted),
          {
            id: 'left',
            title: 'Left',
            number: true,
            cell: ({ waiting, retrying, running, secondsLeft }) => (
              <>
                {count(waiting + retrying + running)}
                {secondsLeft !== undefined && (
                  <div class="muted small">{timeLeft(secondsLeft)}</div>
                )}
              </>
            ),
          },
          countColumn<Batch>('Completed', ({ completed }) => completed),
          {
            id: 'failed',
            title: 'Failed',
            number: true,
            cell: ({ failed, failures }) => (
              <>
                {count(failed)}
                {failures.length > 0 && <div class="muted small">{reasonsOf(failures)}</div>}
              </>
            ),
          },
          { id: 'pushed', title: 'Pushed', cell: ({ createdAt }) => <Moment at={createdAt} /> },
          {
            id: 'act',
            title: '',
            cell: (batch) =>
              batch.state !== BatchState.COMPLETED && (
                <span class="row tight">
                  {batch.state === BatchState.OPEN && (
                    <Button
                      small
                      label={`Close ${batch.name}`}
                      onClick={() => void close.run(batch.name)}
                    >
                      Close
                    </Button>
                  )}
                  <Button
                    small
                    kind="plain"
                    class="bad-text"
                    opensDialog
                    label={`Cancel ${batch.name}`}
                    onClick={() => {
                      cancelling.value = batch.name;
                    }}
                  >
                    Cancel…
                  </Button>
                </span>
              ),
          },
        ]}
      />
      {asked !== undefined && (
        <ConfirmByName
          title={`Cancel ${asked}`}
          name={asked}
          verb="Cancel the batch"
          onClose={leave}
          perform={async () => {
            const { removed, hasMore } = await clients.batches.cancelBatch({ name, batch: asked });
            leave();
            toast(`Removed ${count(removed)} URLs${hasMore ? '; some are left' : ''}.`);
            refresh();
            view.refresh();
          }}
        >
          <p>Removes the URLs of this batch that wait. What is being crawled finishes.</p>
        </ConfirmByName>
      )}
    </Card>
  );
}

function reasonsOf(failures: readonly BatchFailures[]): string {
  return failures
    .map(({ reason, count: crawls }) => `${reason.replaceAll('_', ' ')} ${count(crawls)}`)
    .join(', ');
}

function timeLeft(seconds: bigint): string {
  return `about ${duration(Number(seconds) * 1_000)} left`;
}

function StateBadge({ batch }: { readonly batch: Batch }) {
  if (batch.state === BatchState.COMPLETED) return <span class="badge good">completed</span>;
  if (batch.state === BatchState.CLOSED) return <span class="badge">closed</span>;
  return <span class="badge warn">open</span>;
}
