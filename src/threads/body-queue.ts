import type { Steps } from '../domain/in-turns.ts';
import type { Content } from '../domain/result-fields.ts';
import { type BodyRead, type ReceivedBody, readBody } from '../engine/http/read-body.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import { createTurnQueue } from '../fairness/turn-queue.ts';
import { type PackedCoding, packSteps } from './compress.ts';

/** What is done with a large body. */
export type BodyWork =
  | { readonly kind: 'read'; readonly received: ReceivedBody }
  | { readonly kind: 'pack'; readonly content: Content; readonly coding: PackedCoding };

/** A large body, and what is to be done with it. */
export interface BodyTask {
  readonly id: number;
  /** Accounts, and their crawlers, take turns. */
  readonly claimant: Claimant;
  readonly work: BodyWork;
}

/** A body again, and what it was compressed to. */
export interface Packed {
  readonly body: Uint8Array;
  readonly packed: Uint8Array;
}

/** What became of the work. */
export type BodyAnswer =
  | { readonly kind: 'read'; readonly result: BodyRead }
  | { readonly kind: 'packed'; readonly result: Packed }
  | { readonly kind: 'failed'; readonly message: string };

/** Work on large bodies, that of several accounts in turn, a step of each at a time. */
export interface BodyQueue {
  add(task: BodyTask): void;
  /**
   * Takes the next step for the account whose turn it is. Returns the answer if this step completed
   * one; otherwise undefined.
   */
  step(): { readonly id: number; readonly answer: BodyAnswer } | undefined;
  /** Whether there is something to do. */
  readonly isBusy: boolean;
}

/**
 * Each account with a body under way holds what that becomes, and a compressor of a quarter of a
 * megabyte; others wait.
 */
const MAX_ACTIVE = 8;

interface Active {
  readonly id: number;
  readonly accountId: string;
  readonly steps: Steps<BodyAnswer>;
}

/** Makes an empty queue. A body of one account waits for no more than steps of the others. */
export function createBodyQueue(): BodyQueue {
  // What has been read is packed first: text may be longer than the bytes that came.
  const read = createTurnQueue<BodyTask>();
  const pack = createTurnQueue<BodyTask>();
  /** At most one for each account, in the order of turns. */
  const active: Active[] = [];

  function admit(waiting: typeof read): void {
    if (waiting.size === 0 || active.length === MAX_ACTIVE) return;
    for (const { accountId, item } of waiting.turns()) {
      if (active.length === MAX_ACTIVE) return;
      if (active.some((each) => each.accountId === accountId)) continue;
      waiting.endTurn(accountId);
      active.push({ id: item.id, accountId, steps: answerSteps(item.work) });
    }
  }

  return {
    get isBusy() {
      return active.length > 0 || pack.size > 0 || read.size > 0;
    },
    add(task) {
      (task.work.kind === 'pack' ? pack : read).add(task.claimant, task);
    },
    step() {
      admit(pack);
      admit(read);
      const work = active.shift();
      if (work === undefined) return undefined;
      const { done, value } = work.steps.next();
      if (done === true) return { id: work.id, answer: value };
      active.push(work);
      return undefined;
    },
  };
}

function* answerSteps(work: BodyWork): Steps<BodyAnswer> {
  try {
    if (work.kind === 'read') return { kind: 'read', result: yield* readBody(work.received) };
    const { content, coding } = work;
    return {
      kind: 'packed',
      result: { body: content.body, packed: yield* packSteps(content, coding) },
    };
  } catch (error) {
    return { kind: 'failed', message: error instanceof Error ? error.message : '' };
  }
}
