import { Code, ConnectError } from '@connectrpc/connect';
import { useSignal } from '@preact/signals';
import {
  type FindRidResponse,
  JobState,
  type QueuedJob,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { tokenTypes } from '../../api/session.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Moment } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { Link, query, setQuery } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Facts } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { Empty, Loading } from '../../ui/notice.tsx';
import { AttemptList } from '../crawler/delivery-view.tsx';
import { StoredPage } from '../results/stored-page.tsx';

interface Found {
  readonly type: TokenType;
  readonly reply: FindRidResponse;
}

/** Finds what became of a pushed URL, whichever crawler it went to. */
export function FindPage() {
  const asked = query.value.get('rid') ?? '';
  const typed = useSignal(asked);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Find by rid</h1>
          <p>Every push answers with one. In the queue, on its way or stored: it is found here.</p>
        </div>
      </div>
      <Card>
        <Form onSubmit={() => setQuery('rid', typed.value.trim())}>
          <TextField
            label="rid"
            {...bound(typed)}
            pattern="\s*[0-9a-f]{24}\s*"
            placeholder="6a5f3c7e0f1e2d3c4b5a6978"
            help="24 digits and letters from a to f."
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
      {asked !== '' && <Answer key={asked} rid={asked} />}
    </>
  );
}

function Answer({ rid }: { readonly rid: string }) {
  const { data, fault } = useFeed({ key: `find ${rid}`, poll: () => findRid(rid) });
  if (data === undefined) return <Loading fault={fault} />;
  const { found } = data;
  if (found === undefined) {
    return (
      <Card>
        <Empty title="Nothing is known of this rid">
          <p>
            It never existed, was removed, or its result has expired
            {tokenTypes.value.length > 1 ? '.' : ', or it belongs to the account’s other token.'}
          </p>
        </Empty>
      </Card>
    );
  }
  const { crawler, job, result, delivery } = found.reply;
  return (
    <>
      {crawler !== '' && (
        <p>
          In crawler <Link to={`/crawlers/${crawler}`}>{crawler}</Link>
        </p>
      )}
      {job !== undefined && (
        <Card title="In the queue">
          <JobFacts job={job} />
        </Card>
      )}
      {delivery !== undefined && (
        <Card title="Delivery">
          <AttemptList delivery={delivery} />
        </Card>
      )}
      {result !== undefined && (
        <Card title="Result">
          <StoredPage rid={rid} type={found.type} />
        </Card>
      )}
    </>
  );
}

function JobFacts({ job }: { readonly job: QueuedJob }) {
  const states: Readonly<Record<number, string>> = {
    [JobState.WAITING]: 'waiting',
    [JobState.RETRYING]: 'waiting for a retry',
    [JobState.RUNNING]: 'running',
    [JobState.SCHEDULED]: 'scheduled',
  };
  return (
    <Facts
      items={[
        ['URL', job.url],
        ['State', states[job.state] ?? ''],
        ['Tries', count(job.tries)],
        ['Priority', count(job.priority)],
        ['Last failure', job.lastFailure?.replaceAll('_', ' ') ?? '–'],
        ...(job.climbed === undefined ? [] : [['Blocked before', job.climbed] as const]),
        ['Next try', <Moment at={job.nextTryAt} />],
        ['Pushed', <Moment at={job.pushedAt} />],
        ...(job.metadata === undefined ? [] : [['Metadata', <code>{job.metadata}</code>] as const]),
      ]}
    />
  );
}

/** Asks with each token, as what belongs to the other one is not found. */
async function findRid(rid: string): Promise<{ readonly found: Found | undefined }> {
  for (const type of tokenTypes.peek()) {
    try {
      const reply = await clientsFor(type).activity.findRid({ rid });
      return { found: { type, reply } };
    } catch (error) {
      if (ConnectError.from(error).code !== Code.NotFound) throw error;
    }
  }
  return { found: undefined };
}
