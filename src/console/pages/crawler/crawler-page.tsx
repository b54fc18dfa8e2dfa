import { toJson } from '@bufbuild/protobuf';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import {
  type Crawler,
  CrawlerActivitySchema,
  CrawlerStatus,
  type TokenType,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { CrawlTimes } from '../../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { maskedUrl } from '../../format/masked-url.ts';
import { useCommands } from '../../shell/commands.ts';
import { Link, navigate } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Empty, FaultNotice, Loading } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { useCurrentInView } from '../../ui/use-current-in-view.ts';
import { isOfOtherToken, OfOtherToken, useFound } from '../account/of-other-token.tsx';
import { AttentionNotices } from '../crawlers/attention.tsx';
import { typeOfCrawler } from '../crawlers/crawler-feed.ts';
import { CrawlerStatusBadge, crawlerKind } from '../crawlers/crawler-status.tsx';
import { ResultsCard } from '../results/results-card.tsx';
import { BatchesTab } from './batches-tab.tsx';
import { DeliveriesTab } from './deliveries-tab.tsx';
import { FailuresTab } from './failures-tab.tsx';
import { HostsTab } from './hosts-tab.tsx';
import { JobsTab } from './jobs-tab.tsx';
import { OverviewTab } from './overview-tab.tsx';
import { PushTab } from './push-tab.tsx';
import { RemovalButtons } from './removal-buttons.tsx';
import { addSample, type Sample } from './samples.ts';
import { SettingsTab } from './settings-tab.tsx';
import { CRAWLER_TABS } from './tabs.ts';

/** A crawler as it was last read, and what was read before. */
export interface CrawlerView {
  readonly crawler: Crawler;
  readonly type: TokenType;
  /** Differs when its lists do, as the stream tells; undefined while nothing is streamed. */
  readonly changes: string | undefined;
  /** Reads it again, after a change. */
  readonly refresh: () => void;
}

interface WatchedCrawler {
  readonly crawler: Crawler;
  readonly times: CrawlTimes | undefined;
}

const POLL_MS = 2_000;

/** One crawler: what it does, holds and has done, and everything that can be done with it. */
export function CrawlerPage({ name, tab }: { readonly name: string; readonly tab: string }) {
  const type = useFeed({
    key: `type of ${name}`,
    everyMs: 60_000,
    poll: async () => {
      const found = await typeOfCrawler(name);
      return { found: found === undefined ? undefined : { type: found } };
    },
  });
  const found = useFound(type.data?.found);
  if (type.data === undefined) return <Loading fault={type.fault} />;
  if (found === undefined) {
    return (
      <Empty isPage title={`No crawler is called ${name}`}>
        <p>It may have been deleted, or belong to the account’s other token.</p>
        <Link to="/crawlers" class="button">
          All crawlers
        </Link>
      </Empty>
    );
  }
  // It may have been replaced since.
  if (isOfOtherToken(found)) {
    return <OfOtherToken title={`${name} belongs to the account’s other token`} />;
  }
  return <KnownCrawler name={name} type={found.type} tab={tab} />;
}

function KnownCrawler(props: {
  readonly name: string;
  readonly type: TokenType;
  readonly tab: string;
}) {
  const { name, type } = props;
  const samples = useSignal<readonly Sample[]>([]);
  const clients = clientsFor(type);
  const feed = useFeed<WatchedCrawler>({
    key: `crawler ${name}`,
    everyMs: POLL_MS,
    async *stream(signal) {
      let last: Crawler | undefined;
      for await (const { crawler, crawlTimes } of clients.watch.watchCrawler(
        { name },
        { signal },
      )) {
        last = crawler ?? last;
        if (last !== undefined) yield { crawler: last, times: crawlTimes };
      }
    },
    async poll(signal) {
      const { crawler } = await clients.crawlers.getCrawler({ name }, { signal });
      if (crawler === undefined) throw new Error('The service answered without a crawler.');
      return { crawler, times: undefined };
    },
  });
  const crawler = feed.data?.crawler;
  useEffect(() => {
    if (feed.data === undefined) return;
    samples.value = addSample(samples.peek(), feed.data.crawler, feed.data.times);
  }, [feed.data]);
  const isPaused = crawler?.status === CrawlerStatus.PAUSED;
  const pause = useAction(async () => {
    if (isPaused) await clients.crawlers.unpauseCrawler({ name });
    else await clients.crawlers.pauseCrawler({ name });
    toast(isPaused ? `${name} works again.` : `${name} is paused; its queue is kept.`);
    feed.refresh();
  });
  useCommands([
    { title: `${isPaused ? 'Unpause' : 'Pause'} ${name}`, run: () => void pause.run() },
    { title: `Push URLs into ${name}`, keys: 'u', run: () => navigate(`/crawlers/${name}/push`) },
    ...tabsOf(crawler).map(([id, title], at) => ({
      title: `${name}: ${title}`,
      keys: String(at + 1),
      run: () => navigate(`/crawlers/${name}/${id}`),
    })),
  ]);
  if (crawler === undefined) return <Loading fault={feed.fault} />;

  const tab = tabsOf(crawler).some(([id]) => id === props.tab) ? props.tab : 'overview';
  const changes = feed.state === 'live' ? changesOf(crawler) : undefined;
  const view: CrawlerView = { crawler, type, changes, refresh: feed.refresh };
  return (
    <>
      <div class="page-head">
        <div>
          <div class="row">
            <h1>{name}</h1>
            <CrawlerStatusBadge crawler={crawler} />
          </div>
          <p class="clip">
            {crawlerKind(crawler)}
            {crawler.callbackUrl !== undefined && ` · ${maskedUrl(crawler.callbackUrl)}`}
          </p>
        </div>
        <div class="row">
          <Button busy={pause.busy} onClick={() => void pause.run()}>
            {isPaused ? 'Unpause' : 'Pause'}
          </Button>
          <Link to={`/crawlers/${name}/push`} class="button primary">
            Push URLs
          </Link>
          <RemovalButtons view={view} />
        </div>
      </div>
      <FaultNotice fault={pause.fault ?? feed.fault} />
      <AttentionNotices key={tab} crawler={crawler} />
      <Tabs crawler={crawler} tab={tab} />
      <Tab tab={tab} view={view} samples={samples.value} />
    </>
  );
}

/** Links to the parts of the page. */
function Tabs({ crawler, tab }: { readonly crawler: Crawler; readonly tab: string }) {
  const { name } = crawler;
  return (
    <nav class="tabs" aria-label={`Parts of ${name}`} ref={useCurrentInView(tab)}>
      {tabsOf(crawler).map(([id, title]) => (
        <Link key={id} to={`/crawlers/${name}/${id}`} current={tab === id}>
          {title}
        </Link>
      ))}
    </nav>
  );
}

/** The counters and moments of a crawler, which move with everything that its lists show. */
function changesOf({ activity }: Crawler): string {
  if (activity === undefined) return '';
  return JSON.stringify(toJson(CrawlerActivitySchema, { ...activity, rates: undefined }));
}

function tabsOf(crawler: Crawler | undefined): readonly (readonly [string, string])[] {
  if (crawler === undefined) return [];
  const hidden = deliveryOf(crawler).postsToCallback ? 'results' : 'deliveries';
  return Object.entries(CRAWLER_TABS).filter(([tab]) => tab !== hidden);
}

function Tab(props: {
  readonly tab: string;
  readonly view: CrawlerView;
  readonly samples: readonly Sample[];
}) {
  const { view } = props;
  switch (props.tab) {
    case 'jobs':
      return <JobsTab view={view} />;
    case 'hosts':
      return <HostsTab view={view} />;
    case 'batches':
      return <BatchesTab view={view} />;
    case 'results':
      return (
        <ResultsCard
          title="Results"
          crawler={view.crawler.name}
          type={view.type}
          changes={view.changes}
          next={
            <Link to={`/crawlers/${view.crawler.name}/push`} class="button">
              Push URLs
            </Link>
          }
        />
      );
    case 'deliveries':
      return <DeliveriesTab view={view} />;
    case 'failures':
      return <FailuresTab view={view} />;
    case 'push':
      return <PushTab view={view} />;
    case 'settings':
      return <SettingsTab view={view} />;
    default:
      return <OverviewTab view={view} samples={props.samples} />;
  }
}
