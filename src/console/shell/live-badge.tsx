import { answeredAt, feedStates, isOffline, whyNotLive } from '../api/use-feed.ts';

const time = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

const LIVE =
  'Figures are streamed by the service; lists are read again at once when they change, and every few seconds';

/** Whether what is shown is live; it says so when it is not. */
export function LiveBadge() {
  const states = new Set(feedStates.value.values());
  if (states.size === 0 || (states.has('starting') && states.size === 1)) return null;
  if (isOffline.value) {
    return (
      <span class="live off" role="status">
        <span class="wide-only">Not live: </span>no answer since {time.format(answeredAt.value)}
      </span>
    );
  }
  if (states.has('live')) {
    return (
      <span class="live on" role="status" title={LIVE}>
        Live
      </span>
    );
  }
  return (
    <span
      class="live"
      role="status"
      title={`The service is asked again every few seconds. ${whyNotLive.value}`}
    >
      Not live<span class="wide-only">: updated every few seconds</span>
    </span>
  );
}
