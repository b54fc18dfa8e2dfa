import { type Attention, type AttentionReason, attentionReasons } from '../domain/attention.ts';
import { type Batch, failedOf, removedOf } from '../domain/batch.ts';

/** Subject and text of a mail. */
export interface Notice {
  readonly subject: string;
  readonly text: string;
}

/**
 * Reports that the monitoring paused a crawler because of `error`. Shows `callbackUrl` without
 * credentials and query.
 */
export function crawlerPausedNotice(facts: {
  readonly account: string;
  readonly crawler: string;
  readonly callbackUrl: string | undefined;
  readonly error: string;
  readonly at: Date;
}): Notice {
  return {
    subject: `Crawler ${facts.crawler} is paused: its callback URL does not answer`,
    text: `The crawler ${facts.crawler} of account ${facts.account} was paused
by the monitoring of its callback URL.

Callback URL: ${publicPart(facts.callbackUrl)}
Reason:       ${facts.error}
Time:         ${utc(facts.at)}

No URL was lost: the queue is kept, pushes are accepted, and results
whose delivery failed stay due.

What to do: make the callback URL reachable again and let it answer POST
requests with 200, 201 or 204, the monitoring's own
({"monitor": true}) included. The crawler then resumes by itself. To
resume it earlier, unpause it; if the URL has changed, update the
crawler's callback_url.
`,
  };
}

/** Reports that pushes of an account are refused because more than `limit` URLs are queued. */
export function accountQueueFullNotice(facts: {
  readonly account: string;
  readonly limit: number;
  readonly at: Date;
}): Notice {
  const limit = facts.limit.toLocaleString('en-US');
  return {
    subject: `Pushes of account ${facts.account} are paused: more than ${limit} URLs are queued`,
    text: `The crawlers of account ${facts.account}
together hold more than ${limit} waiting URLs.

Time: ${utc(facts.at)}

New pushes are refused for now. What is queued is kept and crawled as before.

What to do: nothing, if the crawlers are running; pushes are accepted
again by themselves as soon as the total is back at or under
${limit}. To get there sooner, purge or delete crawlers whose URLs are
no longer needed, unpause paused crawlers, or raise their concurrency.
`,
  };
}

const TROUBLE: Readonly<Record<AttentionReason, string>> = {
  paused_by_monitor: 'its callback URL does not answer',
  disk_full: 'its crawls wait, because the disk of the service is almost full',
  storage_full: 'its crawls wait, because the storage of the account is full',
  deliveries_fail: 'its deliveries fail',
  crawls_fail: 'its crawls fail',
  host_away: 'a host is not reached',
  proxies_fail: 'its proxies fail',
  proxy_budget_used: 'its megabytes of proxies are used up',
  queue_full: 'its queue is full',
};

/** Reports that a crawler has needed attention for a while. */
export function attentionNotice(
  facts: Attention & { readonly account: string; readonly crawler: string },
): Notice {
  return {
    subject: `Crawler ${facts.crawler} needs attention: ${TROUBLE[facts.reason]}`,
    text: `The crawler ${facts.crawler} of account ${facts.account} needs attention.

Reason: ${facts.reason}
Found:  ${facts.detail}
Since:  ${utc(facts.since)}

What to do: ${attentionReasons[facts.reason]}

There is no further mail while this lasts. The crawler's setting
notify_after_minutes says after how many minutes there is one; 0 is never.
`,
  };
}

/** Reports that a batch is complete. */
export function batchNotice(facts: {
  readonly account: string;
  readonly crawler: string;
  readonly batch: Batch;
}): Notice {
  const { crawler, account, batch } = facts;
  const reasons = Object.entries(batch.failures).map(([reason, n]) => `  ${reason}: ${n}\n`);
  return {
    subject: `Batch ${batch.name} of crawler ${crawler} is complete`,
    text: `The batch ${batch.name} of crawler ${crawler} of account ${account} is
complete.

Accepted:  ${batch.accepted}
Completed: ${batch.completed}
Failed:    ${failedOf(batch)}
${reasons.join('')}Removed:   ${removedOf(batch)}
Closed:    ${batch.closedAt === undefined ? '' : utc(batch.closedAt)}

The crawler's setting notify_batches switches this mail off.
`,
  };
}

// The query often holds the receiver's password.
function publicPart(callbackUrl: string | undefined): string {
  const url = URL.parse(callbackUrl ?? '');
  return url === null ? '(none)' : `${url.origin}${url.pathname}`;
}

function utc(moment: Date): string {
  return `${moment.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
