import { expect, test } from 'vitest';
import { createHostGate } from '../../../src/dispatcher/host-gate.ts';
import { createHostHealth } from '../../../src/dispatcher/host-health.ts';
import { createLane, heldMs, type Lane, startAt } from '../../../src/dispatcher/host-lane.ts';
import { createLaneOrder } from '../../../src/dispatcher/lane-order.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { seededNoise } from '../../support/seed.ts';

const PACE = { isPaused: false, most: 2, delayMs: 0, asksRobots: false };
const LIMIT = 2;

function jobsOf({ ahead, running }: Lane): number {
  return Math.max(0, Math.min(ahead.size, LIMIT - running.size));
}

const isTry = ({ running, health }: Lane): boolean => running.size === 0 && health.needsTry;

test('the order agrees with a search of all lanes, whatever changes', () => {
  const random = seededNoise('the order of lanes');
  const order = createLaneOrder();
  const lanes = Array.from({ length: 30 }, (_, n) =>
    createLane(`${n}.example`, {
      pace: PACE,
      usedMs: 0,
      health: createHostHealth(() => 1e9),
      gate: createHostGate(),
      member: { changed: () => undefined, start: () => undefined },
    }),
  );
  let now = 0;
  let rids = 0;
  for (let step = 0; step < 5_000; step += 1) {
    now += random.int(40);
    const lane = random.pick(lanes);
    const [running] = lane.running.keys();
    switch (random.int(6)) {
      case 0:
        lane.ahead.set(String((rids += 1)), {} as DueJob);
        break;
      case 1:
        lane.ahead.delete([...lane.ahead.keys()][0] ?? '');
        break;
      case 2:
        lane.running.set(String((rids += 1)), now);
        lane.gate.nextStartMs = now + random.int(200);
        break;
      case 3:
        lane.health.ended({ kind: 'away', reason: 'timeout' }, now, now);
        break;
      case 4:
        if (random.int(4) === 0) lane.health.ended({ kind: 'answered' }, now, now);
        break;
      default:
        lane.running.delete(running ?? '');
        lane.usedMs += random.int(100);
    }
    order.changed(lane, LIMIT);
    const open = lanes.filter((each) => jobsOf(each) > 0);
    const able = open.filter((each) => startAt(each) <= now);
    const others = able.filter((each) => !isTry(each));
    expect(order.startable(now)).toBe(others.reduce((sum, each) => sum + jobsOf(each), 0));
    expect(order.idle(now)).toBe(others.filter(({ running }) => running.size === 0).length);
    const withTries = random.int(2) === 0;
    const least = order.least(now, withTries);
    const held = (withTries ? able : others).map((each) => heldMs(each, now));
    expect(least === undefined ? Number.POSITIVE_INFINITY : heldMs(least, now)).toBe(
      Math.min(...held),
    );
    const later = open.map(startAt).filter((at) => at > now);
    expect(order.nextAt(now) ?? Number.POSITIVE_INFINITY).toBe(Math.min(...later));
  }
});
