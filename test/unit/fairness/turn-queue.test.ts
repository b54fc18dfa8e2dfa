import { expect, test } from 'vitest';
import { createTurnQueue } from '../../../src/fairness/turn-queue.ts';

/** Takes every item in the order of turns. */
function drain(queue: ReturnType<typeof createTurnQueue<string>>): string[] {
  const taken: string[] = [];
  for (let [turn] = queue.turns(); turn !== undefined; [turn] = queue.turns()) {
    taken.push(turn.item);
    queue.endTurn(turn.accountId);
  }
  return taken;
}

function filled(...items: string[]) {
  const queue = createTurnQueue<string>();
  for (const item of items) {
    const [accountId = '', crawlerId = ''] = item.split('/');
    queue.add({ accountId, crawlerId }, item);
  }
  return queue;
}

test('accounts take turns, and so do the crawlers of each', () => {
  const queue = filled('a/1/x', 'a/1/y', 'a/2/x', 'b/1/x', 'b/1/y', 'c/1/x');
  expect([queue.size, queue.count('a'), queue.count('d')]).toEqual([6, 3, 0]);
  expect(queue.turns().map(({ item }) => item)).toEqual(['a/1/x', 'b/1/x', 'c/1/x']);
  expect(drain(queue)).toEqual(['a/1/x', 'b/1/x', 'c/1/x', 'a/2/x', 'b/1/y', 'a/1/y']);
  expect([queue.size, queue.count('a'), queue.turns()]).toEqual([0, 0, []]);
});

test('an account that comes back waits behind those that stayed', () => {
  const queue = filled('a/1/x', 'b/1/x', 'b/1/y');
  queue.endTurn('a');
  queue.add({ accountId: 'a', crawlerId: '1' }, 'a/1/y');
  expect(drain(queue)).toEqual(['b/1/x', 'a/1/y', 'b/1/y']);
});

test('an item that is removed is gone, once', () => {
  const queue = filled('a/1/x', 'a/1/y', 'b/1/x');
  const claimant = { accountId: 'a', crawlerId: '1' };
  expect(queue.remove(claimant, 'a/1/x')).toBe(true);
  expect(queue.remove(claimant, 'a/1/x')).toBe(false);
  expect(queue.remove({ accountId: 'a' }, 'a/1/y')).toBe(false);
  expect([queue.size, drain(queue)]).toEqual([2, ['a/1/y', 'b/1/x']]);
});
