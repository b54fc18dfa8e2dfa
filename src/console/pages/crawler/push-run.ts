import type { MessageInitShape } from '@bufbuild/protobuf';
import { computed, effect, type Signal, signal } from '@preact/signals';
import type {
  PushItemSchema,
  PushService,
} from '../../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { csvLine } from '../../../client/csv-line.ts';
import type { ServiceClient } from '../../../client/service-clients.ts';
import { type Fault, faultOf } from '../../api/fault.ts';
import { session } from '../../api/session.ts';

/** What became of one URL of a pasted list. */
export interface PushedUrl {
  readonly url: string;
  /** Empty when it was refused. */
  readonly rid: string;
  /** Whether the `rid` is that of an earlier push, and nothing was queued. */
  readonly isDuplicate: boolean;
  /** Why it was refused; empty when it was queued. */
  readonly error: string;
}

/**
 * Where a push is: `pushing`; `waiting` for the service to answer again; `stopped` by its user or by
 * a refusal, with URLs left; `ended`.
 */
export type PushState = 'pushing' | 'waiting' | 'stopped' | 'ended';

/** A push of a list. It continues while other pages are shown, until its session or the tab ends. */
export interface PushRun {
  readonly crawler: string;
  readonly total: number;
  readonly done: readonly PushedUrl[];
  readonly state: PushState;
  /** Why it waits or has stopped; undefined when its user stopped it. */
  readonly fault: Fault | undefined;
  /** The URLs that have no outcome yet. */
  left(): readonly string[];
  stop(): void;
  /** Continues with what is left, without queueing anything twice. */
  proceed(): void;
}

/** URLs that are sent together, under the same `request_id` until there is an answer. */
interface Batch {
  readonly requestId: string;
  readonly urls: readonly string[];
}

const BATCH = 100;
/** Refusals of URLs that go with another batch. The second is that of a batch that was repeated. */
const SENT_AGAIN: ReadonlySet<string> = new Set(['rate_limited', 'request_id_used']);
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

const runs: Signal<ReadonlyMap<string, PushRun>> = signal(new Map());

/** The last push into a crawler in this session. */
export const runInto = (crawler: string): PushRun | undefined => runs.value.get(crawler);

/** The pushes that have not ended. */
export const openRuns = computed(() =>
  [...runs.value.values()].filter(({ state }) => state !== 'ended'),
);

const ask = (event: BeforeUnloadEvent): void => event.preventDefault();

effect(() => {
  if (openRuns.value.length > 0) addEventListener('beforeunload', ask);
  else removeEventListener('beforeunload', ask);
});

effect(() => {
  if (session.value !== undefined) return;
  for (const run of runs.peek().values()) run.stop();
  runs.value = new Map();
});

/**
 * Pushes a list in batches. URLs over the push rate are sent again when the service says so, and a
 * batch without an answer is repeated; other refusals are reported.
 */
export function startPush(
  client: Pick<ServiceClient<typeof PushService>, 'pushBatch'>,
  crawler: string,
  urls: readonly string[],
  item: Omit<MessageInitShape<typeof PushItemSchema>, 'url' | '$typeName'>,
  onEnd: () => void,
): void {
  let left = [...urls];
  let batch: Batch | undefined;
  const account = session.peek()?.account;
  let running = new AbortController();
  const run: Omit<PushRun, 'done' | 'state' | 'fault'> = {
    crawler,
    total: urls.length,
    left: () => [...(batch?.urls ?? []), ...left],
    stop: () => running.abort(),
    proceed: () => {
      running = new AbortController();
      void work(running.signal);
    },
  };
  let done: readonly PushedUrl[] = [];
  const show = (state: PushState, fault?: Fault): void => {
    if (session.peek()?.account !== account) return;
    runs.value = new Map(runs.peek()).set(crawler, { ...run, done, state, fault });
  };

  async function work(signal: AbortSignal): Promise<void> {
    let waitMs = FIRST_WAIT_MS;
    show('pushing');
    while (batch !== undefined || left.length > 0) {
      batch ??= { requestId: randomId(), urls: left.splice(0, BATCH) };
      try {
        await send(batch, signal);
        batch = undefined;
        waitMs = FIRST_WAIT_MS;
      } catch (error) {
        const fault = faultOf(error);
        if (signal.aborted) return show('stopped');
        if (!fault.isTransient) return show('stopped', fault);
        show('waiting', fault);
        await sleep(waitMs, signal);
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      }
      if (signal.aborted) return show('stopped');
    }
    show('ended');
    onEnd();
  }

  async function send({ requestId, urls: sent }: Batch, signal: AbortSignal): Promise<void> {
    const items = sent.map((url) => ({ ...item, url }));
    const { results } = await client.pushBatch({ crawler, items, requestId }, { signal });
    const again: string[] = [];
    const answered: PushedUrl[] = [];
    let waitMs = 0;
    for (const [at, { rid, duplicate, error }] of results.entries()) {
      const url = sent[at] ?? '';
      if (error !== undefined && SENT_AGAIN.has(error.code)) {
        again.push(url);
        waitMs = Math.max(waitMs, error.retryAfterMs);
      } else answered.push({ url, rid, isDuplicate: duplicate, error: error?.message ?? '' });
    }
    done = [...done, ...answered];
    // The answer of this batch is final, so what was over the rate goes with another.
    left = [...again, ...left];
    show('pushing');
    if (waitMs > 0) await sleep(waitMs, signal);
  }

  void work(running.signal);
}

/** The URLs of a pasted text, one a line. Empty lines and repeats are left out. */
export function urlsOf(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  return [...new Set(lines.filter((line) => line !== ''))];
}

/** The outcome of a push as CSV: a line for each URL, those without an outcome last. */
export function outcomeText(run: PushRun): string {
  const open = run
    .left()
    .map((url) => ({ url, rid: '', isDuplicate: false, error: 'not pushed yet' }));
  const rows = [...run.done, ...open].map(({ url, rid, isDuplicate, error }) =>
    csvLine([url, rid, error, String(isDuplicate)]),
  );
  return [csvLine(['url', 'rid', 'error', 'duplicate']), ...rows].join('');
}

/** Of 24 digits. `crypto.randomUUID` is there only over TLS. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
}
