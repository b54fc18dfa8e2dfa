import type { CrawlStep } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { LocalTime } from '../../format/moment.tsx';
import { duration } from '../../format/numbers.ts';
import type { JobEvent } from './job-events.ts';

/** What happened to a job, oldest first. */
export function JobTimeline({ events }: { readonly events: readonly JobEvent[] }) {
  return (
    <ol class="timeline" aria-label="Timeline">
      {events.map((event, at) => (
        <li key={`${at} ${event.title}`} class={event.kind}>
          <div class="row spread">
            <strong>{event.title}</strong>
            <span class="muted small">
              {event.at !== undefined && <LocalTime at={event.at} />}
              {event.tookMs !== undefined && `, took ${duration(event.tookMs)}`}
            </span>
          </div>
          {event.detail !== undefined && event.detail !== '' && (
            <p class="muted small">{event.detail}</p>
          )}
          {event.steps !== undefined && event.steps.length > 0 && <Steps steps={event.steps} />}
          {event.answer !== undefined && (
            <details>
              <summary>What the callback URL answered</summary>
              <pre class="code wrap">{event.answer}</pre>
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

/** The parts of a try, each as long as it took. */
function Steps({ steps }: { readonly steps: readonly CrawlStep[] }) {
  const longest = Math.max(...steps.map(({ durationMs }) => durationMs), 1);
  return (
    <dl class="steps">
      {steps.map(({ name, durationMs }, at) => (
        <div key={`${at} ${name}`}>
          <dt>{name.replaceAll('_', ' ')}</dt>
          <dd>
            <meter min={0} max={longest} value={durationMs} aria-hidden="true" />{' '}
            {duration(durationMs)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
