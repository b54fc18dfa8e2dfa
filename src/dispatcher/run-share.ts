import type { Crawler } from '../domain/crawler.ts';
import { DIGITS, digitsBeyond, kindOf } from '../domain/share-digits.ts';
import type { KeptShare, Lease, Share, ShareStore, Sharing } from '../store/store.ts';
import { MAX_PROCESSES, planShares, type SharePlan } from './share-plan.ts';

/** What the share of a run depends on. */
export interface RunActivity {
  readonly crawler: Crawler;
  /** Crawls in flight. */
  readonly inFlight: number;
  /** Whether due jobs wait for a slot. */
  readonly isFull: boolean;
  readonly nowMs: number;
  /**
   * The digits of hosts that a process may not leave to another one yet: they are being crawled, or
   * the delay since their last crawl is not over. None if absent.
   */
  readonly busyDigits?: () => ReadonlySet<string>;
}

/** Which part of its crawler a run dispatches. */
export interface RunShare {
  /** How many crawls it may have in flight. */
  limit(crawler: Crawler): number;
  /** The digits of its jobs; undefined for all. */
  readonly digits: string | undefined;
  /** Digits that other processes may have had until now; undefined for all. */
  readonly lent: ReadonlySet<string> | undefined;
  /** Whether helpers have parts of the crawler. */
  readonly hasHelpers: boolean;
  /** Whether this helper has slots, and the lead will give it jobs once their hosts are free. */
  readonly expectsJobs: boolean;
  /** Takes in how the crawler is shared. */
  learn(sharing: Sharing | undefined): void;
  /** Decides anew. What the run gives up it keeps to at once; `write` follows once that holds. */
  decide(activity: RunActivity): void;
  /** Writes what was decided, unless there is nothing new. */
  write(lease: Lease, now: Date): Promise<void>;
}

/** What a share is made of. */
export interface RunShareDeps {
  /** Undefined if no other process can help. */
  readonly shares: Pick<ShareStore, 'give' | 'keepTo'> | undefined;
  /** How many crawls of the crawler at once this process has room for. */
  readonly roomFor: (crawler: Crawler) => number;
}

/**
 * Slots of a crawler for each process that works on it. Fewer plain HTTP slots are no load, and their
 * connections are reused best in one process. Each browser page is a load.
 */
export const SLOTS_PER_PROCESS = { normal: 25, javascript: 1 } as const;
/**
 * How long jobs wait for slots before the lead asks for help, and how long none waits before it stops
 * asking. Gaps up to `MAX_GAP_MS` do not interrupt a wait.
 */
const ASK_AFTER_MS = 1_000;
const STOP_ASKING_AFTER_MS = 5_000;
const MAX_GAP_MS = 700;
/** Minimum time between two writes of shares. */
const WRITE_EVERY_MS = 200;

/** The share of a lead: all that it has not given to helpers. */
export function createLeadShare({ shares: store, roomFor }: RunShareDeps): RunShare {
  let known: Sharing = { revision: 0, wantsHelp: false, shares: [] };
  /** Whether `known` has shares that may not be written. */
  let isUnsure = false;
  let plan: SharePlan | undefined;
  /** What the plan was made from. */
  let planned = known;
  let lent: ReadonlySet<string> = new Set();
  let wantsHelp = false;
  let fullSinceMs = 0;
  let fullAtMs = Number.NEGATIVE_INFINITY;
  let nextWriteMs = 0;

  function canBeShared({ crawler, inFlight }: RunActivity): boolean {
    if (store === undefined) return false;
    const { concurrency, tokenType, politeness } = crawler;
    if (politeness?.group !== undefined) return false;
    const most = Math.min(MAX_PROCESSES, concurrency / SLOTS_PER_PROCESS[tokenType]);
    if (known.shares.length + 2 > most) return false;
    // With a page for each slot of its own a lead in the browser needs no help.
    return tokenType === 'normal' || inFlight < concurrency - heldBy(known.shares);
  }

  function decideHelp(activity: RunActivity): void {
    const { isFull, nowMs } = activity;
    if (nowMs - fullAtMs > MAX_GAP_MS) fullSinceMs = nowMs;
    if (isFull) fullAtMs = nowMs;
    const may = canBeShared(activity);
    if (!may || nowMs - fullAtMs >= STOP_ASKING_AFTER_MS) wantsHelp = false;
    else if (isFull && nowMs - fullSinceMs >= ASK_AFTER_MS) wantsHelp = true;
  }

  return {
    limit(crawler) {
      if (store === undefined) return crawler.concurrency;
      const room = Math.min(crawler.concurrency, roomFor(crawler));
      return plan === undefined ? room : Math.min(room, plan.slots);
    },
    get digits() {
      return plan?.digits;
    },
    get lent() {
      return lent;
    },
    get hasHelpers() {
      return known.shares.length > 0;
    },
    expectsJobs: false,
    learn(sharing) {
      if (sharing !== undefined && sharing.revision > known.revision) {
        known = sharing;
        isUnsure = false;
      }
    },
    decide(activity) {
      if (store === undefined) return;
      const { crawler, inFlight, busyDigits } = activity;
      const room = Math.min(crawler.concurrency, roomFor(crawler));
      const { concurrency } = crawler;
      const { shares } = known;
      planned = known;
      // Of a polite crawler a process has whole hosts, so that it alone keeps their pace.
      const wanted = crawler.politeness === undefined ? 'rid' : 'host';
      const held = kindOf(shares.map(({ heldDigits }) => heldDigits).join('')) ?? wanted;
      const digits = DIGITS[held];
      const withdraws = held !== wanted;
      const lead = { room, inFlight };
      // What the plan before had taken back is not lent any more.
      const own = plan?.digits ?? '';
      const stillLent = plan === undefined ? [] : [...lent].filter((digit) => !own.includes(digit));
      lent = new Set([...stillLent, ...shares.flatMap(({ heldDigits }) => heldDigits.split(''))]);
      plan =
        shares.length === 0
          ? undefined
          : planShares({ concurrency, lead, shares, digits, withdraws });
      if (plan !== undefined && held === 'host' && busyDigits !== undefined) {
        plan = withoutBusy(plan, shares, busyDigits());
      }
      decideHelp(activity);
    },
    async write(lease, now) {
      // What was learned since the decision needs another one.
      if (planned !== known) return;
      const shares = plan?.shares ?? [];
      const isNew = wantsHelp !== known.wantsHelp || !isSame(shares, known.shares);
      if (store === undefined || !(isNew || isUnsure)) return;
      if (now.getTime() < nextWriteMs) return;
      nextWriteMs = now.getTime() + WRITE_EVERY_MS;
      const { revision } = known;
      // Until the answer is there, and if none comes, helpers may have what is given to them.
      known = { ...known, shares };
      isUnsure = true;
      planned = known;
      const written = await store.give(lease, { revision, wantsHelp, shares }, now);
      if (written === undefined || written <= known.revision) return;
      known = { revision: written, wantsHelp, shares };
      isUnsure = false;
    },
  };
}

/** The share of a helper: what the lead gives to it. */
export function createHelperShare(
  { shares: store, roomFor }: RunShareDeps,
  { epoch }: Lease,
): RunShare {
  let revision = 0;
  let own: Share | undefined;
  let kept: KeptShare | undefined;
  let nextWriteMs = 0;

  return {
    limit: () => own?.slots ?? 0,
    get digits() {
      return own?.digits ?? '';
    },
    lent: undefined,
    hasHelpers: false,
    get expectsJobs() {
      return own !== undefined && own.slots > 0 && (own.digits === '' || own.awaits);
    },
    learn(sharing) {
      if (sharing === undefined || sharing.revision <= revision) return;
      revision = sharing.revision;
      own = sharing.shares.find(({ shareId }) => shareId === -epoch);
    },
    decide({ crawler, inFlight, busyDigits }) {
      kept = undefined;
      if (own === undefined) return;
      const slots = Math.max(own.slots, inFlight);
      const room = Math.max(inFlight, roomFor(crawler));
      const { digits } = own;
      const left = digitsBeyond(own.heldDigits, digits);
      const busy = left.some((digit) => kindOf(digit) === 'host') ? busyDigits?.() : undefined;
      const heldDigits = digits + left.filter((digit) => busy?.has(digit)).join('');
      const isLess = slots < own.heldSlots || heldDigits.length < own.heldDigits.length;
      // Room that is more than it was given is nothing new.
      const isNarrow = room !== own.room && (room < own.slots || own.room < own.slots);
      if (isLess || isNarrow) kept = { slots, digits, heldDigits, room };
    },
    async write(lease, now) {
      if (store === undefined || kept === undefined || now.getTime() < nextWriteMs) return;
      nextWriteMs = now.getTime() + WRITE_EVERY_MS;
      await store.keepTo(lease, kept, now);
      const { slots: heldSlots, heldDigits } = kept;
      if (own !== undefined) own = { ...own, heldSlots, heldDigits };
    },
  };
}

/**
 * A plan that gives helpers only digits whose hosts another process may crawl now. The lead starts
 * nothing of the others, so a later plan gives them.
 */
function withoutBusy(
  plan: SharePlan,
  known: readonly Share[],
  busy: ReadonlySet<string>,
): SharePlan {
  const shares = plan.shares.map((share, index): Share => {
    const had = known[index]?.heldDigits ?? '';
    const keep = (digits: string): string =>
      digits.replace(/./g, (digit) => (busy.has(digit) && !had.includes(digit) ? '' : digit));
    const heldDigits = keep(share.heldDigits);
    const awaits = heldDigits.length < share.heldDigits.length;
    return { ...share, digits: keep(share.digits), heldDigits, awaits };
  });
  return { ...plan, shares };
}

function heldBy(shares: readonly Share[]): number {
  return shares.reduce((sum, { heldSlots }) => sum + heldSlots, 0);
}

function isSame(planned: readonly Share[], known: readonly Share[]): boolean {
  return planned.every((each, index) => {
    const before = known[index];
    return (
      before !== undefined &&
      each.slots === before.slots &&
      each.digits === before.digits &&
      each.heldSlots === before.heldSlots &&
      each.heldDigits === before.heldDigits &&
      each.awaits === before.awaits
    );
  });
}
