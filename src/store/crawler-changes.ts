import type { Crawler, WebhookSecret } from '../domain/crawler.ts';
import { defined } from '../domain/defined.ts';
import type { Pauses } from './rules.ts';
import type { PauseChange } from './store.ts';

/** A change of a crawler at a moment, as it is shown. Undefined if it is so already. */
export type CrawlerChange = (crawler: Crawler, now: Date) => Crawler | undefined;

/** Changes that follow each other so fast are at different moments, unless the clock was set. */
const SAME_TIME_MS = 1_000;

/** What each change of the pauses sets. */
const pauseChanges: Readonly<Record<PauseChange, Partial<Pauses>>> = {
  user_pause: { pausedByUser: true },
  user_unpause: { pausedByUser: false, pausedByMonitor: false },
  monitor_pause: { pausedByMonitor: true },
  monitor_resume: { pausedByMonitor: false },
};

/** The moment of a change. Each differs from the one before: it is the version of the crawler. */
export function changedAt({ updatedAt }: Pick<Crawler, 'updatedAt'>, now: Date): Date {
  const behindMs = updatedAt.getTime() - now.getTime();
  const isSame = behindMs >= 0 && behindMs < SAME_TIME_MS;
  return isSame ? new Date(updatedAt.getTime() + 1) : now;
}

/** See `CrawlerStore.replaceSecrets`. */
export function secretsChange(
  newest: string | undefined,
  webhookSecrets: readonly WebhookSecret[],
): CrawlerChange {
  return (crawler, now) => {
    if (crawler.webhookSecrets[0]?.secret !== newest) return undefined;
    return { ...crawler, webhookSecrets, updatedAt: changedAt(crawler, now) };
  };
}

/** See `CrawlerStore.setPaused`. */
export function pauseChange(change: PauseChange, reason: string | undefined): CrawlerChange {
  const set = pauseChanges[change];
  const begins = change === 'user_pause' || change === 'monitor_pause';
  return (crawler, now) => {
    const { pausedAt, pauseReason, ...others } = crawler;
    const next = { ...others, ...set, updatedAt: changedAt(crawler, now) };
    const { pausedByUser, pausedByMonitor } = crawler;
    if (next.pausedByUser === pausedByUser && next.pausedByMonitor === pausedByMonitor) {
      return undefined;
    }
    // While both pauses hold, the user's is the one that is shown.
    const isShown = pausedByUser && next.pausedByUser;
    const ownReason = change === 'monitor_pause' ? reason : undefined;
    return {
      ...next,
      ...defined({
        pausedAt: isShown ? pausedAt : begins ? now : undefined,
        pauseReason: change === 'user_pause' ? pauseReason : ownReason,
      }),
    };
  };
}

/** See `CrawlerStore.setHostPaused`. */
export function hostPauseChange(host: string, paused: boolean): CrawlerChange {
  return (crawler, now) => {
    const { pausedHosts: before = [], ...others } = crawler;
    if (before.includes(host) === paused) return undefined;
    const hosts = paused ? [...before, host] : before.filter((each) => each !== host);
    const updatedAt = changedAt(crawler, now);
    return { ...others, ...(hosts.length === 0 ? {} : { pausedHosts: hosts }), updatedAt };
  };
}
