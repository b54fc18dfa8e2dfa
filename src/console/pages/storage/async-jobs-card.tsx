import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { useSignal } from '@preact/signals';
import type { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { PagedTable, urlColumn } from '../../ui/paged-table.tsx';
import { toast } from '../../ui/toasts.tsx';
import { usePages } from '../../ui/use-pages.ts';

/** The jobs of crawls with `async=true` that wait; nothing is shown when no job waits. */
export function AsyncJobsCard(props: { readonly title: string; readonly type: TokenType }) {
  const { crawlers } = clientsFor(props.type);
  const pages = usePages(
    `async ${props.type}`,
    async (pageToken, pageSize, signal) => {
      const { jobs, nextPageToken } = await crawlers.listAsyncJobs(
        { pageSize, pageToken },
        { signal },
      );
      return { rows: jobs, nextPageToken };
    },
    undefined,
    `async-page-${props.type}`,
  );
  const remove = async (rid: string): Promise<void> => {
    await crawlers.deleteAsyncJob({ rid });
    toast('Removed the job.');
    pages.refresh();
  };
  const isPurge = useSignal(false);
  const rows = pages.data?.rows ?? [];
  if (rows.length === 0 && pages.back === undefined) return null;
  return (
    <Card
      flush
      title={props.title}
      actions={
        <Button
          small
          kind="danger"
          opensDialog
          onClick={() => {
            isPurge.value = true;
          }}
        >
          Purge…
        </Button>
      }
    >
      <PagedTable
        label="Asynchronous crawls"
        pages={pages}
        empty={null}
        columns={[
          urlColumn('url'),
          { id: 'retry', title: 'Retries', number: true, cell: ({ retry }) => count(retry ?? 0) },
          {
            id: 'pushed',
            title: 'Pushed',
            cell: ({ createdAt }) => (
              <Moment
                at={createdAt === undefined ? undefined : timestampFromMs(createdAt * 1_000)}
              />
            ),
          },
          {
            id: 'remove',
            title: '',
            cell: ({ rid, url }) => (
              <AskingButton
                small
                text="Remove"
                label={`Remove ${url}`}
                question="Remove this asynchronous crawl?"
                verb="Remove"
                perform={() => remove(rid)}
              >
                <p class="break">{url}</p>
                <p>It is not crawled, and has no result.</p>
              </AskingButton>
            ),
          },
        ]}
      />
      {isPurge.value && (
        <ConfirmByName
          title="Purge the asynchronous crawls"
          name="async"
          verb="Purge"
          onClose={() => {
            isPurge.value = false;
          }}
          perform={async () => {
            const { purged } = await crawlers.purgeAsyncJobs({});
            isPurge.value = false;
            toast(`Removed ${count(purged)} asynchronous crawls.`);
            pages.refresh();
          }}
        >
          <p>
            Removes all asynchronous crawls of this token that wait, retries included. What is being
            crawled finishes; results stay.
          </p>
        </ConfirmByName>
      )}
    </Card>
  );
}
