import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { tokenTypes } from '../../api/session.ts';
import { Link } from '../../shell/route.tsx';
import { Card } from '../../ui/card.tsx';
import { FilterBar } from '../crawler/match-filter.tsx';
import { ResultsCard } from '../results/results-card.tsx';
import { AsyncJobsCard } from './async-jobs-card.tsx';

/** All stored results, those of asynchronous and kept crawls included, which belong to no crawler. */
export function StoragePage() {
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Storage</h1>
          <p>Every result that is kept, of all crawlers and of crawls without one.</p>
        </div>
      </div>
      <Card>
        <FilterBar />
      </Card>
      {tokenTypes.value.map((type) => (
        <div class="stack" key={type}>
          <ResultsCard
            title={`Results of the ${nameOf(type)} token`}
            crawler=""
            type={type}
            next={
              <Link to="/crawl" class="button">
                Crawl one URL and keep it
              </Link>
            }
          />
          <AsyncJobsCard title={`Asynchronous crawls of the ${nameOf(type)} token`} type={type} />
        </div>
      ))}
    </>
  );
}

function nameOf(type: TokenType): string {
  return type === TokenType.JAVASCRIPT ? 'JavaScript' : 'Normal';
}
