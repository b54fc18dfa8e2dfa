import type { ComponentChildren } from 'preact';
import {
  CrawlOutcome,
  MatchAction,
  ResultSummarySchema,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { Moment } from '../../format/moment.tsx';
import { bytes } from '../../format/numbers.ts';
import { query, queryField, setQuery } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/notice.tsx';
import { PagedTable, urlColumn } from '../../ui/paged-table.tsx';
import { Segments } from '../../ui/segments.tsx';
import { toast } from '../../ui/toasts.tsx';
import { usePages } from '../../ui/use-pages.ts';
import { MatchActions } from '../crawler/match-actions.tsx';
import { addressFilter, FilterBar, NO_ROWS, NoMatches } from '../crawler/match-filter.tsx';
import { isText } from './page-content.ts';
import { StatusBadge } from './status-badge.tsx';
import { StoredPageDialog } from './stored-page.tsx';

const OUTCOMES = [
  ['', 'All'],
  ['done', 'Done'],
  ['failed', 'Failed'],
] as const;
const OUTCOME_OF = {
  '': CrawlOutcome.UNSPECIFIED,
  done: CrawlOutcome.COMPLETED,
  failed: CrawlOutcome.FAILED,
};

const FIELDS = [
  'rid',
  'pushed_url',
  'url',
  'cb_status',
  'original_status',
  'failure',
  'stored_at',
  'expires_at',
  'content_type',
  'size_bytes',
  'batch',
  'metadata',
] as const;

/** The stored results of a crawler, or of all that a token addresses, newest first. */
export function ResultsCard(props: {
  readonly title: string;
  /** Empty for all crawlers, and for the crawls that belong to none. */
  readonly crawler: string;
  readonly type: TokenType;
  /** Differs when the results do; undefined where nothing is streamed. */
  readonly changes?: string | undefined;
  /** Where URLs are pushed or crawled, to fill an empty list. */
  readonly next: ComponentChildren;
}) {
  const { crawler, type } = props;
  // The page of the storage has a card for each token.
  const suffix = crawler === '' && type === TokenType.JAVASCRIPT ? '_javascript' : '';
  const outcome = queryField(
    `outcome${suffix}`,
    OUTCOMES.map(([value]) => value),
    '',
  );
  const openParameter = `result${suffix}`;
  const open = query.value.get(openParameter) ?? '';
  const clients = clientsFor(type);
  const filter = addressFilter();
  const read = async (pageToken: string, pageSize: number, signal?: AbortSignal) => {
    if (filter.fault !== undefined) return NO_ROWS;
    const selection = { outcome: OUTCOME_OF[outcome.value], filter: filter.message };
    const { results: rows, nextPageToken } = await clients.activity.listResults(
      { name: crawler, ...selection, pageSize, pageToken },
      signal && { signal },
    );
    return { rows, nextPageToken };
  };
  const pages = usePages(
    `results ${crawler} ${outcome.value} ${filter.key}`,
    read,
    props.changes,
    `page${suffix}`,
  );
  const remove = async (rid: string): Promise<void> => {
    await clients.storage.deleteResult({ rid });
    toast('Removed the result.');
    pages.refresh();
  };
  return (
    <Card
      flush
      title={props.title}
      actions={
        <Segments
          label="Results"
          value={outcome.value}
          options={OUTCOMES}
          onPick={(picked) => {
            outcome.value = picked;
          }}
        />
      }
    >
      <div class="card-part">
        {crawler !== '' && <FilterBar />}
        <MatchActions
          crawler={crawler}
          type={type}
          what="results"
          actions={
            crawler === ''
              ? []
              : [
                  {
                    action: MatchAction.PUSH_AGAIN,
                    verb: 'Push again',
                    effect: 'Failed crawls among them are pushed again, as they were pushed.',
                  },
                  {
                    action: MatchAction.REMOVE_RESULTS,
                    verb: 'Remove',
                    effect: 'Their pages are deleted from storage.',
                    outcome: OUTCOME_OF[outcome.value],
                  },
                ]
          }
          fields={FIELDS}
          desc={ResultSummarySchema}
          read={read}
          onEnd={pages.refresh}
        />
      </div>
      <PagedTable
        label="Results"
        pages={pages}
        isWrong={filter.fault !== undefined}
        empty={
          filter.key === '' ? (
            <Empty title="No result is kept">
              <p>Push a URL; its page appears here as soon as it is crawled.</p>
              {props.next}
            </Empty>
          ) : (
            <NoMatches filter={filter} />
          )
        }
        columns={[
          urlColumn('pushedUrl'),
          {
            id: 'status',
            title: 'Status',
            cell: ({ cbStatus, failure }) => (
              <StatusBadge cbStatus={cbStatus} failure={failure ?? ''} />
            ),
          },
          {
            id: 'site',
            title: 'Site',
            number: true,
            cell: ({ originalStatus }) => originalStatus || '–',
          },
          {
            id: 'size',
            title: 'Stored',
            number: true,
            cell: ({ sizeBytes }) => <span class="nowrap">{bytes(sizeBytes)}</span>,
          },
          { id: 'at', title: 'When', cell: ({ storedAt }) => <Moment at={storedAt} /> },
          {
            id: 'until',
            title: 'Kept until',
            cell: ({ expiresAt }) => <Moment at={expiresAt} />,
          },
          {
            id: 'actions',
            title: '',
            cell: ({ rid, pushedUrl, contentType }) => (
              <span class="row tight">
                <Button
                  small
                  opensDialog
                  label={`Open the result of ${pushedUrl}`}
                  onClick={() => {
                    setQuery(openParameter, rid);
                  }}
                >
                  Open
                </Button>
                {isText(contentType) && (
                  <Button
                    small
                    kind="plain"
                    opensDialog
                    label={`Source of the result of ${pushedUrl}`}
                    onClick={() => {
                      setQuery('view', 'source');
                      setQuery(openParameter, rid);
                    }}
                  >
                    Source
                  </Button>
                )}
                <AskingButton
                  small
                  text="Remove"
                  label={`Remove the result of ${pushedUrl}`}
                  question="Remove this result?"
                  verb="Remove"
                  perform={() => remove(rid)}
                >
                  <p class="break">{pushedUrl}</p>
                  <p>The page is deleted from storage.</p>
                </AskingButton>
              </span>
            ),
          },
        ]}
      />
      {open !== '' && (
        <StoredPageDialog
          rid={open}
          type={type}
          onClose={() => {
            setQuery(openParameter, '');
          }}
        />
      )}
    </Card>
  );
}
