import { expect, test } from 'vitest';
import { createJobBoard, type JobBoard } from '../../../src/dispatcher/job-board.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { createFairPool, type Grant } from '../../../src/fairness/fair-pool.ts';
import { toStored } from '../../contract/store/outcomes.ts';
import { makeJobs } from '../../contract/store/store-harness.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const AT = new Date('2026-03-01T12:00:00Z');
const crawler = webhookCrawler();
const memory = createFairPool({ name: 'memory', capacity: 1_000_000 });

function grant(): Grant {
  const given = memory.tryAcquire(crawler, 1);
  if (given === undefined) throw new Error('the pool is empty');
  return given;
}

/** Reads jobs ahead and returns their rids. */
function read(board: JobBoard, count: number): string[] {
  return makeJobs(crawler, count).map((job) => {
    const due: DueJob = {
      ...job,
      state: 'waiting',
      retry: 0,
      attempt: 0,
      crashes: 0,
      firstTriedAt: undefined,
      dueAt: AT,
    };
    board.read({ job: due, held: grant() });
    return job.rid;
  });
}

const start = (board: JobBoard, rid: string, abort = new AbortController()): void =>
  board.start({ rid, attempt: 1, startedAt: AT }, abort);

function end(board: JobBoard, rid: string, body = new Uint8Array(10)): void {
  const job = { rid, crawlerId: crawler.crawlerId, attempt: 1, url: '' };
  board.end(toStored(job, { body }), { held: [grant()] });
}

const counts = ({ ahead, crawling, ended, unwrittenStarts }: JobBoard) => ({
  ahead,
  crawling,
  ended,
  unwrittenStarts,
});

test('a job is ahead, crawling, ended and written, in this order only', () => {
  const board = createJobBoard(1_000);
  const [rid = ''] = read(board, 1);
  expect(() => end(board, rid)).toThrow(rid);
  expect(() => board.drop(rid)).toThrow(rid);
  expect(counts(board)).toEqual({ ahead: 1, crawling: 0, ended: 0, unwrittenStarts: 0 });
  start(board, rid);
  expect(() => start(board, rid)).toThrow(rid);
  expect(counts(board)).toEqual({ ahead: 0, crawling: 1, ended: 0, unwrittenStarts: 1 });
  const first = board.take();
  expect(first).toEqual({ ended: [], started: [{ rid, attempt: 1, startedAt: AT }] });
  board.written(first);
  end(board, rid);
  expect(counts(board)).toEqual({ ahead: 0, crawling: 0, ended: 1, unwrittenStarts: 0 });
  const last = board.take();
  expect(last.ended.map(({ outcome }) => outcome.startedAt)).toEqual([undefined]);
  board.written(last);
  expect(() => board.written(last)).toThrow(rid);
  expect(counts(board)).toEqual({ ahead: 0, crawling: 0, ended: 0, unwrittenStarts: 0 });
});

test('the end of a crawl writes its start if no turn has', () => {
  const board = createJobBoard(1_000);
  const [rid = ''] = read(board, 1);
  start(board, rid);
  expect(board.waitingInStore()).toEqual([rid]);
  end(board, rid);
  expect(board.waitingInStore()).toEqual([rid]);
  const { ended, started } = board.take();
  expect([started, ended[0]?.outcome.startedAt]).toEqual([[], AT]);
});

test('a failed turn writes its starts again, with the ends that came during it', () => {
  const board = createJobBoard(1_000);
  const [running = '', ending = '', ended = ''] = read(board, 3);
  for (const rid of [running, ending, ended]) start(board, rid);
  end(board, ended);
  const failed = board.take();
  end(board, ending);
  board.failed(failed);
  const again = board.take();
  expect(again.started.map(({ rid }) => rid)).toEqual([running]);
  expect(again.ended.map(({ outcome }) => [outcome.rid, outcome.startedAt])).toEqual([
    [ended, AT],
    [ending, AT],
  ]);
});

test('a turn takes the ends that fit into one write, and a larger page alone', () => {
  const board = createJobBoard(100);
  const rids = read(board, 4);
  for (const rid of rids) start(board, rid);
  for (const [index, bytes] of [500, 60, 30, 20].entries()) {
    end(board, rids[index] ?? '', new Uint8Array(bytes));
  }
  const sizes = [board.nextWriteBytes];
  while (board.ended > 0) {
    board.take();
    sizes.push(board.nextWriteBytes);
  }
  expect(sizes).toEqual([500, 90, 20, 0]);
});

test('what is forgotten, dropped or cleared gives its memory back', () => {
  const board = createJobBoard(1_000);
  const before = memory.used;
  const [waiting = '', dropped = '', ended = '', cleared = ''] = read(board, 4);
  board.forget(waiting);
  board.forget('not here');
  const abort = new AbortController();
  start(board, dropped, abort);
  board.abort(dropped, new Error('gone'));
  expect(abort.signal.aborted).toBe(true);
  board.drop(dropped);
  start(board, ended);
  end(board, ended);
  expect([...board.jobsAhead()].map(({ rid }) => rid)).toEqual([cleared]);
  board.clear();
  expect(memory.used).toBe(before);
  expect(counts(board)).toEqual({ ahead: 0, crawling: 0, ended: 0, unwrittenStarts: 0 });
});
