import { count } from '../format/numbers.ts';
import { openMatchRuns } from '../pages/crawler/match-run.ts';
import { openRuns } from '../pages/crawler/push-run.ts';
import { Link } from './route.tsx';

/** The pushes of lists, and the actions on what a filter selects, that have not ended, on every page. */
export function PushPills() {
  return [...pushPills(), ...matchPills()];
}

function matchPills() {
  return openMatchRuns.value.map(({ crawler, verb, done, total, state, ...run }) => (
    <span key={`act ${crawler}`} class="pill">
      {state === 'stopped' ? 'Stopped' : verb}: {count(done)}
      {total !== undefined && ` of ${count(total)}`} in{' '}
      <Link to={`/crawlers/${crawler}`}>{crawler}</Link>{' '}
      {state === 'running' ? (
        <button type="button" onClick={run.stop}>
          Stop
        </button>
      ) : (
        <>
          <button type="button" onClick={run.proceed}>
            Continue
          </button>{' '}
          <button type="button" onClick={run.dismiss}>
            Dismiss
          </button>
        </>
      )}
    </span>
  ));
}

function pushPills() {
  return openRuns.value.map(({ crawler, done, total, state }) => (
    <Link key={crawler} to={`/crawlers/${crawler}/push`} class="pill">
      {state === 'stopped' ? 'Stopped' : 'Pushing'}: {count(done.length)} of {count(total)} into{' '}
      {crawler}
    </Link>
  ));
}
