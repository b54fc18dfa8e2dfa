import {
  AttentionReason,
  type Crawler,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { Moment } from '../../format/moment.tsx';
import { Link } from '../../shell/route.tsx';
import { LiveNotice } from '../../ui/notice.tsx';

const STORAGE = ['/storage', 'Storage'] as const;

/** What a reason is called, and which tab of the crawler, or other page, shows more of it. */
const REASONS: Readonly<
  Record<AttentionReason, { readonly title: string; readonly tab: readonly [string, string] }>
> = {
  [AttentionReason.UNSPECIFIED]: { title: 'Needs attention', tab: ['overview', 'Overview'] },
  [AttentionReason.PAUSED_BY_MONITOR]: {
    title: 'Callback failing',
    tab: ['settings', 'Settings'],
  },
  [AttentionReason.DELIVERIES_FAIL]: {
    title: 'Deliveries fail',
    tab: ['failures?kind=delivery', 'Failed deliveries'],
  },
  [AttentionReason.CRAWLS_FAIL]: {
    title: 'Crawls fail',
    tab: ['failures?kind=retry', 'Failed tries'],
  },
  [AttentionReason.HOST_AWAY]: { title: 'Host not reached', tab: ['hosts', 'Hosts'] },
  [AttentionReason.PROXIES_FAIL]: { title: 'Proxies fail', tab: ['hosts', 'Hosts'] },
  [AttentionReason.PROXY_BUDGET_USED]: {
    title: 'Proxy budget used',
    tab: ['settings', 'Settings'],
  },
  [AttentionReason.STORAGE_FULL]: { title: 'Storage full', tab: STORAGE },
  [AttentionReason.DISK_FULL]: { title: 'Disk full', tab: STORAGE },
  [AttentionReason.QUEUE_FULL]: { title: 'Queue full', tab: ['jobs', 'Queue'] },
};

const ALL_REASONS = Object.keys(REASONS).map(Number) as AttentionReason[];

// A service that is newer than this page may name others.
const reasonOf = (reason: AttentionReason) =>
  REASONS[reason] ?? REASONS[AttentionReason.UNSPECIFIED];

/** Whether somebody should look at it. */
export function isAttention(crawler: Crawler): boolean {
  return crawler.attention.length > 0;
}

/** Its most urgent trouble and since when; nothing without trouble. */
export function AttentionBadge({ crawler }: { readonly crawler: Crawler }) {
  const [first, ...others] = crawler.attention;
  if (first === undefined) return null;
  const all = crawler.attention.map(({ reason, detail }) => `${reasonOf(reason).title}: ${detail}`);
  return (
    <span>
      <span class="badge bad" title={[...all, first.nextStep].join('\n')}>
        {reasonOf(first.reason).title}
        {others.length > 0 && ` +${others.length}`}
      </span>{' '}
      <span class="small muted">
        <Moment at={first.since} none="" />
      </span>
    </span>
  );
}

/** All its trouble: what was found, since when, what to do, and where to look. */
export function AttentionNotices({ crawler }: { readonly crawler: Crawler }) {
  const found = new Map(crawler.attention.map((each) => [each.reason, each]));
  return (
    <>
      {[...new Set([...found.keys(), ...ALL_REASONS])].map((reason) => {
        const { title, tab } = reasonOf(reason);
        const { since, detail = '', nextStep = '' } = found.get(reason) ?? {};
        return (
          <LiveNotice key={reason} isOn={found.has(reason)} kind="bad" title={title}>
            <p>
              Began <Moment at={since} />: {detail}.
            </p>
            <p>
              {nextStep}{' '}
              <Link to={tab[0].startsWith('/') ? tab[0] : `/crawlers/${crawler.name}/${tab[0]}`}>
                {tab[1]}
              </Link>
            </p>
          </LiveNotice>
        );
      })}
    </>
  );
}
