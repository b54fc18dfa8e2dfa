import type { HistoryDay } from '../../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useFeed } from '../../api/use-feed.ts';
import { queryField } from '../../shell/route.tsx';
import { Card } from '../../ui/card.tsx';
import { Segments } from '../../ui/segments.tsx';
import { DayHistory } from '../account/day-history.tsx';
import { dayBefore } from '../account/days.ts';
import type { CrawlerView } from './crawler-page.tsx';

const RANGES = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const;

const range = queryField('days', ['7', '30', '90'], '30');

/** What a crawler did on each of the last days. */
export function HistoryCard({ view }: { readonly view: CrawlerView }) {
  const { name } = view.crawler;
  const { data } = useFeed<readonly HistoryDay[]>({
    key: `history ${name} ${range.value}`,
    everyMs: 30_000,
    async poll(signal) {
      const { crawlers } = await clientsFor(view.type).stats.getStats(
        { historyFrom: dayBefore(Number(range.value) - 1), historyOf: [name] },
        { signal },
      );
      return crawlers.find((each) => each.name === name)?.history ?? [];
    },
  });
  return (
    <Card
      title="By day"
      actions={
        <Segments
          label="Range"
          value={range.value}
          options={RANGES}
          onPick={(picked) => {
            range.value = picked;
          }}
        />
      }
    >
      <DayHistory days={data} last={Number(range.value)} />
    </Card>
  );
}
