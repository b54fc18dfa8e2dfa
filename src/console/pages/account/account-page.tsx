import { useSignal } from '@preact/signals';
import type { GetActivityResponse } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { AccountQuotas } from '../../../../gen/queuedcrawler/v1/quotas_pb.ts';
import { accountClients } from '../../api/clients.ts';
import { session, signIn, tokenTypes } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { useFeed } from '../../api/use-feed.ts';
import { bytes, count, rate } from '../../format/numbers.ts';
import { Link } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Card, Facts, Figures } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { Meter } from '../../ui/meter.tsx';
import { FaultNotice, LiveNotice, Loading } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { AuditCard } from './audit-card.tsx';
import { DayHistory } from './day-history.tsx';
import { dayBefore } from './days.ts';

type Activity = NonNullable<GetActivityResponse['activity']>;

/** What the whole account does, and whether it may push. */
export function AccountPage() {
  const clients = accountClients();
  const now = useFeed<Activity>({
    key: 'activity',
    async *stream(signal) {
      let last: Activity | undefined;
      for await (const { activity } of clients.watch.watchActivity({}, { signal })) {
        last = activity ?? last;
        if (last !== undefined) yield last;
      }
    },
    async poll(signal) {
      const { activity } = await clients.activity.getActivity({}, { signal });
      if (activity === undefined) throw new Error('The service answered without activity.');
      return activity;
    },
  });
  const stats = useFeed({
    key: 'account history',
    everyMs: 30_000,
    poll: (signal) =>
      clients.stats.getStats(
        { historyFrom: dayBefore(29), withoutCrawlerHistory: true },
        { signal },
      ),
  });
  const quotas = stats.data?.quotas;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Account {session.value?.account}</h1>
          <p>All crawlers of both tokens together.</p>
        </div>
      </div>
      {now.data === undefined ? (
        <Loading fault={now.fault} />
      ) : (
        <AccountNow activity={now.data} full={usedUp(quotas)} fault={now.fault} />
      )}
      <Card title="By day">
        <DayHistory days={stats.data?.history} last={30} />
      </Card>
      <AuditCard />
      {quotas !== undefined && (
        <Card title="Quotas">
          <div class="columns">
            {(
              [
                ['Crawlers', quotas.crawlers, count],
                ['Concurrency of all crawlers', quotas.concurrency, count],
                ['Stored results and deliveries', quotas.storageBytes, bytes],
                ['Bytes in queues', quotas.queueBytes, bytes],
                ['Calls a second', quotas.requestsPerSecond, count],
                ['Probes a minute', quotas.probesPerMinute, count],
                ['Replays an hour', quotas.replaysPerHour, count],
              ] as const
            ).map(([label, quota, show]) => (
              <Meter
                key={label}
                label={label}
                used={Number(quota?.used ?? 0)}
                limit={Number(quota?.limit ?? 0)}
                show={show}
              />
            ))}
          </div>
        </Card>
      )}
      {stats.data !== undefined && stats.data.stored.length > 0 && (
        <Card title="In storage">
          <Facts
            items={stats.data.stored.map(({ tokenType, results, bytes: size }) => [
              tokenType === TokenType.NORMAL ? 'Normal token' : 'JavaScript token',
              `${count(results)} results, ${bytes(size)}`,
            ])}
          />
        </Card>
      )}
      {tokenTypes.value.length < 2 && <OtherToken />}
    </>
  );
}

/** The quotas that refuse pushes once they are used up. */
const PUSH_QUOTAS = [
  ['storageBytes', 'stored results and deliveries'],
  ['queueBytes', 'bytes in queues'],
] as const;

/** What of an account is used up, so that its pushes are refused. */
function usedUp(quotas: AccountQuotas | undefined): readonly string[] {
  return PUSH_QUOTAS.filter(([name]) => {
    const { used = 0n, limit = 0n } = quotas?.[name] ?? {};
    return limit > 0n && used >= limit;
  }).map(([, text]) => text);
}

function AccountNow(
  props: { readonly activity: Activity; readonly full: readonly string[] } & Parameters<
    typeof FaultNotice
  >[0],
) {
  const { activity, full } = props;
  const { admission, totals } = activity;
  const rates = totals?.rates;
  const fullCrawlers = admission?.fullCrawlers ?? [];
  return (
    <>
      <FaultNotice fault={props.fault} />
      <LiveNotice
        isOn={admission?.pushesPaused === true}
        kind="bad"
        title="Pushes are refused: too many URLs wait"
      >
        <p>They are accepted again by themselves when the queues are shorter, or purged.</p>
      </LiveNotice>
      <LiveNotice isOn={full.length > 0} kind="bad" title="Pushes are refused: a quota is used up">
        <p>
          Used up: {full.join(', ')}. Remove <Link to="/storage">results</Link>, or ask the operator
          for more.
        </p>
      </LiveNotice>
      <LiveNotice isOn={fullCrawlers.length > 0} kind="warn" title="Full queues">
        <p>{fullCrawlers.join(', ')}: pushes into these are refused.</p>
      </LiveNotice>
      <Figures
        items={[
          { name: 'Waiting', value: count(totals?.waiting ?? 0n) },
          {
            name: 'Being crawled',
            value: count(totals?.running ?? 0n),
            of: `of ${count(activity.concurrency)}`,
          },
          { name: 'Retrying', value: count(totals?.retrying ?? 0n) },
          { name: 'Pushed', value: rate(rates?.pushed ?? 0) },
          { name: 'Crawled', value: rate((rates?.completed ?? 0) + (rates?.failed ?? 0)) },
          { name: 'Delivered', value: rate(rates?.delivered ?? 0) },
        ]}
      />
      <Card title="Push limits">
        <div class="stack">
          <Meter
            label="URLs that wait, of the account’s limit"
            used={Number(admission?.queued ?? 0)}
            limit={Number(admission?.accountLimit ?? 0)}
          />
          <Facts
            items={[
              ['Pushes', admission?.pushesPaused || full.length > 0 ? 'refused' : 'accepted'],
              ['Limit of each crawler', `${count(admission?.crawlerLimit ?? 0n)} URLs`],
              [
                'Push rate of a token',
                admission?.pushesPerSecond
                  ? `${count(admission.pushesPerSecond)} a second`
                  : 'no limit',
              ],
              ['E-mail for notices', activity.email || 'none: the operator sets it'],
              [
                'Crawlers',
                `${count(activity.crawlersRunning)} working or ready, ${count(
                  activity.crawlersPausedByUser + activity.crawlersPausedByMonitor,
                )} paused`,
              ],
            ]}
          />
        </div>
      </Card>
    </>
  );
}

function OtherToken() {
  const token = useSignal('');
  const add = useAction(async () => {
    const before = session.peek()?.tokens ?? [];
    await signIn(token.value.trim());
    token.value = '';
    const added = (session.peek()?.tokens ?? []).filter((each) => !before.includes(each));
    if (added.length === 0) toast('You are signed in with this token already.', 'bad');
    else if (added.includes('admin')) toast('The pages of the operator are shown now.');
    else toast('Crawlers of both types are shown now.');
  });
  return (
    <Card title="The account’s other token">
      <Form onSubmit={() => void add.run()}>
        <TextField
          label="Token"
          type="password"
          {...bound(token)}
          help="Crawlers are addressed with the token of their type. With both, all of them are shown."
          required
          mono
        />
        <FaultNotice fault={add.fault} />
        <div class="row end">
          <Button submit busy={add.busy}>
            Add
          </Button>
        </div>
      </Form>
    </Card>
  );
}
