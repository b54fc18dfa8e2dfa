import { count } from '../format/numbers.ts';
import { openRuns } from '../pages/crawler/push-run.ts';
import { Link } from './route.tsx';

/** The pushes of lists that have not ended, on every page. */
export function PushPills() {
  return openRuns.value.map(({ crawler, done, total, state }) => (
    <Link key={crawler} to={`/crawlers/${crawler}/push`} class="pill">
      {state === 'stopped' ? 'Stopped' : 'Pushing'}: {count(done.length)} of {count(total)} into{' '}
      {crawler}
    </Link>
  ));
}
