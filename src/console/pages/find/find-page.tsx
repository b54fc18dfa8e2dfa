import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SearchHit } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { tokenTypes } from '../../api/session.ts';
import { ONCE_MS, useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { Link, query, replaceAddress, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { Empty, Loading, Notice } from '../../ui/notice.tsx';
import { JobPage } from '../job/job-page.tsx';

const KINDS: Readonly<Record<string, string>> = {
  job: 'In the queue',
  result: 'Stored',
  delivery: 'Delivery',
};

/** Finds crawlers and pushed URLs by whatever is known of them. */
export function FindPage() {
  const rid = query.value.get('rid') ?? '';
  const asked = query.value.get('q') ?? '';
  const typed = useSignal(asked);
  const searches = useSignal(0);
  useEffect(() => {
    typed.value = asked;
  }, [asked]);
  if (rid !== '') return <JobPage key={rid} rid={rid} />;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Find</h1>
          <p>A URL or a part of one, a host, a rid, or the name of a crawler.</p>
        </div>
      </div>
      <Card>
        <Form
          onSubmit={() => {
            setQuery('q', typed.value.trim());
            searches.value += 1;
          }}
        >
          <TextField
            label="Find"
            {...bound(typed)}
            placeholder="https://shop.example/p/42"
            required
            autofocus
            mono
          />
          <div class="row end">
            <Button kind="primary" submit>
              Find
            </Button>
          </div>
        </Form>
      </Card>
      {asked !== '' && <Answer key={`${searches.value} ${asked}`} asked={asked} />}
    </>
  );
}

function Answer({ asked }: { readonly asked: string }) {
  const { data, fault, refresh } = useFeed({
    key: `search ${asked}`,
    everyMs: ONCE_MS,
    poll: (signal) => search(asked, signal),
  });
  // Of a whole URL, the only job is what was looked for.
  const rids = new Set(data?.hits.map(({ rid }) => rid));
  const [only] = /^https?:/i.test(asked) && rids.size === 1 ? rids : [];
  useEffect(() => {
    if (only !== undefined) replaceAddress(`/jobs/${only}`);
  }, [only]);
  if (data === undefined) return <Loading fault={fault} retry={refresh} />;
  const { crawlers, hits, isPartial } = data;
  return (
    <>
      {isPartial && (
        <Notice title="There may be more">
          <p>
            Only the latest of each crawler were looked through. A longer part of the URL, or the
            filter of a crawler’s list, finds the others.
          </p>
        </Notice>
      )}
      {crawlers.length > 0 && (
        <Card title="Crawlers">
          <ul class="stack tight">
            {crawlers.map((name) => (
              <li key={name}>
                <Link to={`/crawlers/${name}`}>{name}</Link>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {hits.length > 0 && (
        <Card title="URLs" flush>
          <Hits hits={hits} />
        </Card>
      )}
      {crawlers.length + hits.length === 0 && (
        <Card>
          <Empty title="Nothing was found" />
        </Card>
      )}
    </>
  );
}

function Hits({ hits }: { readonly hits: readonly SearchHit[] }) {
  return (
    <DataTable
      label="URLs"
      rows={hits}
      keyOf={({ rid, kind }) => `${rid} ${kind}`}
      columns={[
        {
          id: 'url',
          title: 'URL',
          grow: true,
          whole: true,
          cell: ({ rid, url }) => (
            <Link to={`/jobs/${rid}`} class="clip" title={url}>
              {url}
            </Link>
          ),
        },
        { id: 'kind', title: 'Where', cell: ({ kind }) => KINDS[kind] ?? kind },
        {
          id: 'crawler',
          title: 'Crawler',
          cell: ({ crawler }) =>
            crawler === '' ? (
              <span class="muted">–</span>
            ) : (
              <Link to={`/crawlers/${crawler}`}>{crawler}</Link>
            ),
        },
        { id: 'at', title: 'When', cell: ({ at }) => <Moment at={at} /> },
      ]}
    />
  );
}

/** Asks with each token: a token finds its own. */
async function search(text: string, signal: AbortSignal) {
  const answers = await Promise.all(
    tokenTypes.peek().map((type) => clientsFor(type).activity.search({ query: text }, { signal })),
  );
  return {
    crawlers: answers.flatMap((each) => each.crawlers),
    hits: answers.flatMap((each) => each.hits),
    isPartial: answers.some((each) => each.isPartial),
  };
}
