import { toJson } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { FindRidResponse } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { type PushItem, PushItemSchema } from '../../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { tokenTypes } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { Link, navigate } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card, Facts } from '../../ui/card.tsx';
import { Empty, FaultNotice, Loading } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { isOfOtherToken, OfOtherToken, useFound } from '../account/of-other-token.tsx';
import { DeliveryFacts } from '../crawler/delivery-view.tsx';
import { StoredPage } from '../results/stored-page.tsx';
import { jobEvents } from './job-events.ts';
import { JobTimeline } from './job-timeline.tsx';

interface Found {
  readonly type: TokenType;
  readonly reply: FindRidResponse;
}

/** What happened to one pushed URL. */
export function JobPage({ rid }: { readonly rid: string }) {
  const { data, fault, refresh } = useFeed({ key: `job ${rid}`, poll: () => findRid(rid) });
  const found = useFound(data?.found);
  if (found !== undefined && isOfOtherToken(found)) {
    return <OfOtherToken title="This job belongs to the account’s other token" />;
  }
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Job</h1>
          <p>
            <code>{rid}</code>
            {found !== undefined && found.reply.crawler !== '' && (
              <>
                {' '}
                in crawler{' '}
                <Link to={`/crawlers/${found.reply.crawler}`}>{found.reply.crawler}</Link>
              </>
            )}
          </p>
        </div>
      </div>
      {data === undefined ? (
        <Loading fault={fault} />
      ) : found === undefined ? (
        <Card>
          <Empty title="Nothing is known of this rid">
            <p>
              It never existed, was removed, or its result has expired
              {tokenTypes.value.length > 1 ? '.' : ', or it belongs to the account’s other token.'}
            </p>
          </Empty>
        </Card>
      ) : (
        <FoundJob rid={rid} found={found} refresh={refresh} />
      )}
    </>
  );
}

function FoundJob(props: {
  readonly rid: string;
  readonly found: Found;
  readonly refresh: () => void;
}) {
  const { rid, refresh } = props;
  const { type, reply } = props.found;
  const { crawler, job, result, delivery, push } = reply;
  const clients = clientsFor(type);
  const pushAgain = useAction(async (item: PushItem) => {
    const { results } = await clients.pushes.pushBatch({ crawler, items: [item] });
    const [outcome] = results;
    if (outcome?.error !== undefined) return toast(outcome.error.message, 'bad');
    toast('Pushed again.');
    navigate(`/jobs/${outcome?.rid}`);
  });
  const replay = useAction(async () => {
    await clients.crawlers.replayDeliveries({ name: crawler, rid });
    toast('Queued for replay.');
    refresh();
  });
  const metadata = (job ?? result ?? delivery)?.metadata;
  const againOf = (job ?? result ?? delivery)?.againOf;
  const batch = (job ?? result ?? delivery)?.batch;
  const climbed = (job ?? result)?.climbed;
  const hasCrawler = crawler !== '';
  return (
    <>
      <FaultNotice fault={pushAgain.fault ?? replay.fault} />
      <Card
        title="What happened"
        actions={
          <div class="row">
            {job !== undefined && hasCrawler && (
              <AskingButton
                small
                text="Remove"
                question="Remove this URL from the queue?"
                verb="Remove"
                perform={async () => {
                  await clients.crawlers.deleteJob({ name: crawler, rid });
                  toast('Removed the job.');
                  refresh();
                }}
              >
                <p>It is not crawled, and has no result.</p>
              </AskingButton>
            )}
            {delivery !== undefined && hasCrawler && (
              <Button small busy={replay.busy} onClick={() => void replay.run()}>
                Replay
              </Button>
            )}
            {push !== undefined && hasCrawler && (
              <Button small busy={pushAgain.busy} onClick={() => void pushAgain.run(push)}>
                Push again like this
              </Button>
            )}
          </div>
        }
      >
        <div class="stack">
          <Facts
            items={[
              ['URL', job?.url ?? result?.pushedUrl ?? delivery?.pushedUrl ?? ''],
              ...(batch === undefined ? [] : [['Batch', batch] as const]),
              ...(climbed === undefined ? [] : [['Blocked before', climbed] as const]),
              ...(metadata === undefined
                ? []
                : [['Metadata', <code class="break">{metadata}</code>] as const]),
              ...(againOf === undefined
                ? []
                : [['Repeats', <Link to={`/jobs/${againOf}`}>{againOf}</Link>] as const]),
            ]}
          />
          <JobTimeline events={jobEvents(reply)} />
        </div>
      </Card>
      {delivery !== undefined && (
        <Card title="Delivery">
          <DeliveryFacts delivery={delivery} />
          {reply.sentHeaders.length > 0 && (
            <details>
              <summary>Headers of the latest POST</summary>
              <pre class="code wrap">
                {reply.sentHeaders.map(({ name, value }) => `${name}: ${value}`).join('\n')}
              </pre>
            </details>
          )}
        </Card>
      )}
      {result !== undefined && (
        <Card title="Result">
          <StoredPage rid={rid} type={type} />
        </Card>
      )}
      <Card title="Request">
        {push === undefined ? (
          <p class="muted">
            The parameters of a request with a body, or of an older version, are not kept once its
            crawl ended well.
          </p>
        ) : !hasCrawler ? (
          <p class="muted">The crawler was deleted. Only a new one takes this URL again.</p>
        ) : (
          <CallPreview example={pushExample(crawler, push)} />
        )}
      </Card>
    </>
  );
}

function pushExample(crawler: string, push: PushItem) {
  const item = toJson(PushItemSchema, push, { useProtoFieldName: true }) as object;
  return {
    rest: {
      method: 'POST',
      path: `/crawler/$TOKEN/${crawler}/push_batch`,
      body: { items: [item] },
    },
    grpc: { method: 'PushService/PushBatch', message: { crawler, items: [item] } },
  } as const;
}

/** Asks with each token, as what belongs to the other one is not found. */
async function findRid(rid: string): Promise<{ readonly found: Found | undefined }> {
  for (const type of tokenTypes.peek()) {
    try {
      return { found: { type, reply: await clientsFor(type).activity.findRid({ rid }) } };
    } catch (error) {
      if (ConnectError.from(error).code !== Code.NotFound) throw error;
    }
  }
  return { found: undefined };
}
