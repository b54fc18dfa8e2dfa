import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  PushItem,
  PushItemSchema,
  PushService,
} from '../../../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { ServiceClient } from '../../../client/service-clients.ts';

/** What became of one URL of a pasted list. */
export interface PushedUrl {
  readonly url: string;
  /** Empty when it was refused. */
  readonly rid: string;
  /** Why it was refused; empty when it was queued. */
  readonly error: string;
}

/** The progress of a push. */
export interface PushProgress {
  readonly total: number;
  readonly done: readonly PushedUrl[];
}

const BATCH = 100;

/**
 * Pushes a list in batches. Items over the push rate are sent again when the service says so;
 * other refusals are reported. Resolves when all are done, or `signal` is aborted.
 */
export async function pushAll(
  client: ServiceClient<typeof PushService>,
  crawler: string,
  urls: readonly string[],
  item: Omit<MessageInitShape<typeof PushItemSchema>, 'url'>,
  signal: AbortSignal,
  report: (progress: PushProgress) => void,
): Promise<void> {
  const done: PushedUrl[] = [];
  let left = [...urls];
  while (left.length > 0 && !signal.aborted) {
    const batch = left.slice(0, BATCH);
    const rest = left.slice(BATCH);
    const items = batch.map((url) => ({ ...item, url }) as PushItem);
    const { results } = await client.pushBatch({ crawler, items }, { signal });
    const again: string[] = [];
    let waitMs = 0;
    for (const [at, { rid, error }] of results.entries()) {
      const url = batch[at] ?? '';
      if (error?.code === 'rate_limited') {
        again.push(url);
        waitMs = Math.max(waitMs, error.retryAfterMs);
      } else done.push({ url, rid, error: error?.message ?? '' });
    }
    left = [...again, ...rest];
    report({ total: urls.length, done: [...done] });
    if (waitMs > 0) await sleep(waitMs, signal);
  }
}

/** The URLs of a pasted text, one a line. Empty lines and repeats are left out. */
export function urlsOf(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return [...new Set(lines.filter((line) => line !== ''))];
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
