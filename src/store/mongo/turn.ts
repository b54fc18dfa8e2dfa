import { heldDeliveries } from '../held-deliveries.ts';
import { isShare } from '../share-store.ts';
import type {
  DeliveryOutcome,
  Lease,
  QueueStore,
  StartedJob,
  TurnReceipt,
  TurnWork,
} from '../store.ts';
import type { Collections } from './collections.ts';
import type { Batch, Delta } from './counts.ts';
import { addSettled, claimDeliveries, nextDelivery, settleDeliveries } from './deliveries.ts';
import { type WrittenJobs, writeJobs } from './finish.ts';
import { bothDone } from './in-halves.ts';
import type { KnownJobs } from './job-facts.ts';
import type { KnownStates } from './known-states.ts';
import { currentLease, isLive } from './lease.ts';
import { type CrawlerState, type Ledger, type Rider, STATE_FIELDS } from './ledger.ts';
import { look } from './look.ts';
import { createRareness, recount } from './recount.ts';
import { shareOf } from './shares.ts';

/** Creates `QueueStore.turn`. */
export function createTurn(
  collections: Collections,
  ledger: Ledger,
  known: KnownJobs,
  states: KnownStates,
): QueueStore['turn'] {
  const mayRecount = createRareness();

  function readState(crawlerId: string): Promise<CrawlerState | null> {
    return collections.crawlers.findOne({ _id: crawlerId }, { projection: STATE_FIELDS });
  }

  /** Writes what ended and started, and what was settled, and counts it in one update. */
  async function write(
    lease: Lease,
    work: TurnWork,
    now: Date,
    before: CrawlerState,
  ): Promise<
    Pick<TurnReceipt, 'verdicts' | 'settled' | 'lost'> & { readonly after: CrawlerState | null }
  > {
    const { crawlerId } = lease;
    const { ended = [], started = [], settled = [] } = work;
    const { accountId, purges } = before;
    // Only the update below can tell.
    const isOurs = isHolder(before, lease);
    const batch = ledger.newBatch();
    const epoch = isOurs ? lease.epoch : undefined;
    const [written, won] = await bothDone(
      writeJobs(
        collections,
        known,
        { crawlerId, batch, now, purges, accountId, epoch },
        ended,
        isOurs && !isPaused(before) ? started : [],
      ),
      settleDeliveries(collections, ledger.newWriteId(), settled, now),
    );
    let mayRun = true;
    const rider = createRider({ lease, now, written, settled: won }, () => {
      mayRun = false;
    });
    const ends: Batch = written?.batch ?? { crawlerId, ...batch, ended: [] };
    const { exists, after } =
      written === undefined && won.length === 0
        ? { exists: true, after: undefined }
        : await ledger.settle(ends, now, before, rider);
    if (written !== undefined) await ledger.tidy(crawlerId, () => written.discard(exists));
    const begun = new Set(written?.repeated);
    for (const { start } of mayRun ? (written?.started ?? []) : []) begun.add(start);
    return {
      verdicts: ended.map((each) => (exists && written?.outcomes.has(each) ? 'won' : 'lost')),
      settled: settled.map((each) => (exists && won.includes(each) ? 'won' : 'lost')),
      lost: started.filter((each) => !begun.has(each)).map(({ rid }) => rid),
      after: after ?? (await readState(crawlerId)),
    };
  }

  async function takeTurn(lease: Lease, work: TurnWork, now: Date): Promise<TurnReceipt> {
    const { ended = [], started = [], settled = [] } = work;
    const { crawlerId } = lease;
    const writes = ended.length + started.length + settled.length > 0;
    const last = states.take(crawlerId, writes);
    let state = last !== undefined && isHolder(last, lease) ? last : await readState(crawlerId);
    if (state === null) return nothingLeft(work);
    if (state.miscounted === true && !isShare(lease)) {
      if (mayRecount(crawlerId)) await recount(collections, crawlerId, now, { all: true });
      state = await readState(crawlerId);
      if (state === null) return nothingLeft(work);
    }
    const { after, ...done } = writes
      ? await write(lease, work, now, state)
      : { verdicts: [], settled: [], lost: [], after: state };
    if (after === null) return nothingLeft(work);
    state = after;
    states.set(state);
    const isOurs = isCurrent(state, lease, now);
    const paused = isPaused(state);
    const posts = isOurs && !state.pausedByMonitor ? work.deliveries : undefined;
    const claimed =
      posts === undefined
        ? []
        : await claimDeliveries(collections, ledger.newWriteId(), lease, posts, now);
    const nextDeliveryAt =
      posts !== undefined && claimed.length === 0
        ? await nextDelivery(collections, crawlerId)
        : undefined;
    const found =
      work.look !== undefined && isOurs && !paused
        ? await look(collections, ledger.countedPushes, known, state, work.look, now)
        : { jobs: [], hasMore: false, nextDueAt: undefined };
    const held = isOurs ? heldDeliveries(ended, done.verdicts, now) : [];
    return { ...done, held, claimed, nextDeliveryAt, ...found, leaseLost: !isOurs, paused };
  }

  return (lease, work, now) =>
    ledger.runExclusive(lease.crawlerId, () => takeTurn(lease, work, now));
}

/** Counts starts and settled deliveries together with the ends of a turn. */
function createRider(
  turn: {
    readonly lease: Lease;
    readonly now: Date;
    readonly written: WrittenJobs | undefined;
    readonly settled: readonly DeliveryOutcome[];
  },
  onStartsRefused: () => void,
): Rider | undefined {
  const { lease, now, written, settled } = turn;
  const started = written?.started ?? [];
  if (started.length === 0 && settled.length === 0) return undefined;
  // A push that reserved room since the look is not counted yet, and nothing starts in a pause.
  const pushes = [...new Set(started.map(({ facts }) => facts.push))];
  const running = { pausedByUser: false, pausedByMonitor: false, 'pending.id': { $nin: pushes } };
  return {
    hasStarts: started.length > 0,
    hasSettled: settled.length > 0,
    filter: { ...currentLease(lease, now), ...running },
    addTo(delta, { starts, pending }) {
      for (const { facts } of starts ? started : []) {
        delta.add('running', 1);
        delta.add('runningBytes', facts.size ?? 0);
        if (facts.retry > 0) delta.add('retrying', -1);
        delta.addQueued(-1);
      }
      addSettledBy(lease, delta, settled, pending);
    },
    async startsRefused() {
      onStartsRefused();
      await written?.takeBackStarts();
    },
  };
}

/** Adds what was settled. The lead learns of deliveries of a helper that are due again. */
function addSettledBy(
  lease: Lease,
  delta: Delta,
  settled: readonly DeliveryOutcome[],
  pending: boolean,
): void {
  addSettled(delta, settled, pending);
  if (isShare(lease) && settled.some(isDueAgain)) delta.add('wakes', 1);
}

function isDueAgain({ kind }: DeliveryOutcome): boolean {
  return kind === 'retry' || kind === 'release';
}

/** Whether nobody else has taken the lease, or the share has not ended. */
function isHolder(state: CrawlerState, lease: Lease): boolean {
  if (isShare(lease)) return shareOf(state, lease) !== undefined;
  return state.epoch === lease.epoch && state.leaseOwner === lease.owner;
}

function isCurrent(state: CrawlerState, lease: Lease, now: Date): boolean {
  const until = isShare(lease) ? shareOf(state, lease)?.until : state.leaseUntil;
  return isHolder(state, lease) && isLive(until, now);
}

function isPaused({ pausedByUser, pausedByMonitor }: CrawlerState): boolean {
  return pausedByUser || pausedByMonitor;
}

/** The receipt of a turn whose crawler is gone. */
function nothingLeft({ ended = [], started = [], settled = [] }: TurnWork): TurnReceipt {
  return {
    verdicts: ended.map(() => 'lost' as const),
    settled: settled.map(() => 'lost' as const),
    held: [],
    claimed: [],
    nextDeliveryAt: undefined,
    lost: started.map(({ rid }: StartedJob) => rid),
    jobs: [],
    hasMore: false,
    nextDueAt: undefined,
    leaseLost: true,
    paused: false,
  };
}
