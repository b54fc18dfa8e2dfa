import type { MessageInitShape } from '@bufbuild/protobuf';
import { computed, effect, type Signal, signal } from '@preact/signals';
import type {
  ActivityService,
  ActOnMatchesRequestSchema,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { ServiceClient } from '../../../client/service-clients.ts';
import { type Fault, faultOf } from '../../api/fault.ts';
import { session } from '../../api/session.ts';

/** An action on all that a filter selects. It continues while other pages are shown. */
export interface MatchRun {
  readonly crawler: string;
  /** Such as `Remove`. */
  readonly verb: string;
  /** How many the estimate found; undefined if it was not waited for. */
  readonly total: number | undefined;
  readonly matched: number;
  readonly done: number;
  readonly refused: number;
  readonly state: 'running' | 'stopped' | 'ended';
  readonly fault: Fault | undefined;
  stop(): void;
  /** Continues where it has stopped. */
  proceed(): void;
  /** Forgets it. */
  dismiss(): void;
}

type Request = Omit<MessageInitShape<typeof ActOnMatchesRequestSchema>, '$typeName'>;
type Client = Pick<ServiceClient<typeof ActivityService>, 'actOnMatches'>;

const runs: Signal<ReadonlyMap<string, MatchRun>> = signal(new Map());

/** The last action on a crawler in this session. */
export const matchRunOf = (crawler: string): MatchRun | undefined => runs.value.get(crawler);

/** The actions that have not ended. */
export const openMatchRuns = computed(() =>
  [...runs.value.values()].filter(({ state }) => state !== 'ended'),
);

const ask = (event: BeforeUnloadEvent): void => event.preventDefault();

effect(() => {
  const isRunning = openMatchRuns.value.some(({ state }) => state === 'running');
  if (isRunning) addEventListener('beforeunload', ask);
  else removeEventListener('beforeunload', ask);
});

effect(() => {
  if (session.value !== undefined) return;
  for (const run of runs.peek().values()) run.stop();
  runs.value = new Map();
});

/** Starts an action. The last one on the same crawler must have ended. */
export function startMatchRun(
  client: Client,
  request: Request & { readonly name: string },
  { verb, total, onEnd }: Pick<MatchRun, 'verb' | 'total'> & { readonly onEnd: () => void },
): void {
  const { name: crawler } = request;
  const account = session.peek()?.account;
  let running = new AbortController();
  let before = { matched: 0, done: 0, refused: 0 };
  let pageToken = '';
  const run = {
    crawler,
    verb,
    total,
    stop: () => running.abort(),
    proceed: () => {
      running = new AbortController();
      void work(running.signal);
    },
    dismiss: () => {
      const others = new Map(runs.peek());
      others.delete(crawler);
      runs.value = others;
    },
  };
  const show = (counts: typeof before, state: MatchRun['state'], fault?: Fault): void => {
    if (session.peek()?.account !== account) return;
    runs.value = new Map(runs.peek()).set(crawler, { ...run, ...counts, state, fault });
  };

  async function work(signal: AbortSignal): Promise<void> {
    const start = before;
    show(before, 'running');
    try {
      for await (const part of client.actOnMatches({ ...request, pageToken }, { signal })) {
        before = {
          matched: start.matched + part.matched,
          done: start.done + part.done,
          refused: start.refused + part.refused,
        };
        pageToken = part.nextPageToken;
        show(before, 'running');
      }
      show(before, pageToken === '' ? 'ended' : 'stopped');
    } catch (error) {
      show(before, 'stopped', signal.aborted ? undefined : faultOf(error));
    }
    onEnd();
  }

  void work(running.signal);
}
