import { Code, ConnectError } from '@connectrpc/connect';
import type { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { type CrawledPage, unpackResult } from './crawled-page.ts';
import { type ReconnectOptions, reconnect } from './reconnect.ts';
import { notRepeated } from './retries.ts';
import type { CallOptions, ServiceClient } from './service-clients.ts';

/** Results that are acknowledged by one call. */
const ACKNOWLEDGED_TOGETHER = 100;

/** Three times the wait in which the service sends a message; see StreamResultsResponse. */
const SILENCE_MS = 60_000;
const LONGEST_SILENCE_MS = 3_600_000;

/** Which results are read, and how. */
export interface EveryResultOptions extends ReconnectOptions {
  /** Only those of this crawler; default all of the token's. */
  readonly crawler?: string;
  /** Only those of this batch of the crawler. */
  readonly batch?: string;
  /** Continues behind this result: the `resumeToken` of the last one that was worked on. */
  readonly resumeToken?: string;
  /** Waits for new results instead of ending after the last. Default false. */
  readonly follow?: boolean;
  /**
   * Removes results from storage after the caller has taken them, up to a hundred at a time.
   * Default false.
   */
  readonly acknowledge?: boolean;
}

/** A result, and the token to continue behind it. */
export interface StreamedPage extends CrawledPage {
  readonly resumeToken: string;
}

type Storage = Pick<ServiceClient<typeof StorageService>, 'streamResults' | 'acknowledgeResults'>;

/**
 * Yields stored results in their order; see CrawlerClient.everyResult. A stream without a message for
 * `silenceMs` is opened again.
 */
export async function* everyResult(
  storage: Storage,
  options: EveryResultOptions = {},
  silenceMs: number = SILENCE_MS,
): AsyncGenerator<StreamedPage, void, undefined> {
  const { crawler = '', batch = '', follow = false, acknowledge = false } = options;
  const callOptions = options.signal === undefined ? {} : { signal: options.signal };
  let resumeToken = options.resumeToken ?? '';
  let unacknowledged = 0;
  let allowedMs = silenceMs;

  /** Undefined says that all results were sent. */
  async function* connection(): AsyncGenerator<StreamedPage | undefined, void, undefined> {
    const left = new AbortController();
    const signal = AbortSignal.any([left.signal, ...(options.signal ? [options.signal] : [])]);
    const request = { crawler, batch, follow, resumeToken };
    function awaitMessage(): NodeJS.Timeout {
      return setTimeout(() => {
        // One page over a slow connection may take longer.
        allowedMs = Math.min(allowedMs * 2, LONGEST_SILENCE_MS);
        left.abort(new ConnectError('the stream sent nothing', Code.Unavailable));
      }, allowedMs);
    }
    let timer = awaitMessage();
    try {
      for await (const message of storage.streamResults(request, { signal })) {
        clearTimeout(timer);
        allowedMs = silenceMs;
        if (message.result === undefined) yield undefined;
        else {
          yield { ...(await unpackResult(message.result)), resumeToken: message.resumeToken };
          unacknowledged += 1;
        }
        resumeToken = message.resumeToken;
        const isIdle = message.result === undefined;
        // Not repeated: nobody reads the stream during the wait, and a service that stops waits for that.
        const isDue = isIdle || unacknowledged >= ACKNOWLEDGED_TOGETHER;
        if (isDue) await confirm({ contextValues: notRepeated(), timeoutMs: silenceMs });
        timer = awaitMessage();
      }
    } finally {
      clearTimeout(timer);
      // Leaving the loop does not end the call.
      left.abort();
    }
  }

  async function confirm(more: CallOptions = {}): Promise<void> {
    if (!acknowledge || unacknowledged === 0) return;
    await storage.acknowledgeResults({ crawler, batch, resumeToken }, { ...callOptions, ...more });
    unacknowledged = 0;
  }

  let hasFailed = false;
  try {
    for await (const page of reconnect(connection, options)) {
      if (page !== undefined) yield page;
    }
  } catch (error) {
    hasFailed = true;
    throw error;
  } finally {
    // Also when the caller leaves its loop; the result that it had last counts as not taken.
    if (!hasFailed) await confirm({ timeoutMs: silenceMs });
  }
}
