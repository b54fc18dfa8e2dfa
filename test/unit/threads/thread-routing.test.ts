import { expect, test, vi } from 'vitest';
import type { CrawlTask } from '../../../src/engine/engine.ts';
import { createThreadRouting, type ThreadPlace } from '../../../src/threads/thread-routing.ts';

function taskOf(host: string, accountId: string): CrawlTask {
  return {
    request: {
      url: `http://${host}/`,
      method: 'GET',
      body: undefined,
      contentType: undefined,
      parameters: {},
    },
    tokenType: 'normal',
    accountId,
    crawlerId: 'crawler',
    politeness: undefined,
  };
}

/** Routing over threads that are up or not, and what is in flight in each of them. */
function createHarness(up: readonly boolean[], shared = up.length, spreads = true) {
  const isUp = [...up];
  const prepared = new Set<number>();
  const inFlight = up.map(() => 0);
  const routing = createThreadRouting({
    count: up.length,
    shared,
    spreads,
    inFlight: (thread) => inFlight[thread] ?? 0,
    isUp: (thread) => isUp[thread] ?? false,
    prepare: (thread) => void prepared.add(thread),
  });
  return {
    routing,
    isUp,
    prepared,
    inFlight,
    enter(host: string, accountId = 'account'): ThreadPlace {
      const place = routing.enter(taskOf(host, accountId));
      inFlight[place.thread] = (inFlight[place.thread] ?? 0) + 1;
      return {
        thread: place.thread,
        leave() {
          place.leave();
          inFlight[place.thread] = (inFlight[place.thread] ?? 0) - 1;
        },
      };
    },
  };
}

test('ten crawls of a host share a thread, further ones are spread evenly', () => {
  const { enter, inFlight } = createHarness([true, true, true]);
  for (let n = 0; n < 10; n += 1) enter('one.test');
  expect(inFlight).toEqual([10, 0, 0]);
  for (let n = 0; n < 10; n += 1) enter('one.test');
  expect(inFlight).toEqual([10, 10, 0]);
  for (let n = 0; n < 40; n += 1) enter('one.test');
  expect(inFlight).toEqual([20, 20, 20]);
});

test('a host has no more crawls in a thread than its even part, so it needs no more connections', () => {
  const { enter, inFlight } = createHarness([true, true]);
  const places: ThreadPlace[] = [];
  let most = 0;
  for (let n = 0; n < 500; n += 1) {
    while (places.length < 30) places.push(enter('one.test'));
    most = Math.max(most, ...inFlight);
    // Now this one ends, now that one: no thread's crawls are quicker.
    for (const at of [n % 30, (n * 7) % 29, (n * 3) % 28]) places.splice(at, 1)[0]?.leave();
  }
  expect(most).toBe(15);
});

test('a host that is new begins in the thread with the least in flight', () => {
  const { enter, inFlight } = createHarness([true, true, true]);
  enter('one.test');
  enter('two.test');
  enter('three.test');
  enter('two.test');
  expect(inFlight).toEqual([1, 2, 1]);
});

test('a thread that is not up is started, and the others do its work until it is', () => {
  const { enter, routing, isUp, prepared, inFlight } = createHarness([true, false]);
  for (let n = 0; n < 12; n += 1) enter('one.test');
  expect([[...prepared], inFlight]).toEqual([[1], [12, 0]]);
  expect(enter('two.test').thread).toBe(0);
  expect(routing.leastLoaded()).toBe(0);
  isUp[1] = true;
  expect(enter('one.test').thread).toBe(1);
  expect(enter('two.test').thread).toBe(1);
  expect(routing.leastLoaded()).toBe(1);
});

test('while no thread is up, work waits for its own', () => {
  const { enter, prepared } = createHarness([false, false]);
  expect(enter('one.test').thread).toBe(0);
  expect([...prepared]).toEqual([0]);
});

test('while another account crawls, and for ten seconds after it, a host keeps to one thread', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const { enter, inFlight } = createHarness([true, true]);
    const flood = Array.from({ length: 40 }, () => enter('one.test', 'flooder'));
    expect(inFlight).toEqual([20, 20]);
    enter('two.test', 'quiet').leave();
    const renewed = flood.map((place) => {
      place.leave();
      return enter('one.test', 'flooder');
    });
    expect(inFlight).toEqual([40, 0]);
    const quiet = enter('two.test', 'quiet');
    expect(quiet.thread).toBe(1);
    quiet.leave();
    enter('one.test', 'flooder');
    expect(inFlight).toEqual([41, 0]);
    vi.advanceTimersByTime(11_000);
    for (const place of renewed.slice(20)) {
      place.leave();
      enter('one.test', 'flooder');
    }
    expect(inFlight).toEqual([21, 20]);
  } finally {
    vi.useRealTimers();
  }
});

test('a host with nothing in flight leaves a thread that others have made busy', () => {
  const { enter, inFlight } = createHarness([true, true]);
  enter('one.test').leave();
  inFlight[0] = 10;
  enter('one.test').leave();
  expect(inFlight).toEqual([10, 0]);
  inFlight[0] = 11;
  expect(enter('one.test').thread).toBe(1);
});

test('threads that are not for several accounts are used by one that is alone', () => {
  const { enter, routing, inFlight } = createHarness([true, true], 1);
  for (let n = 0; n < 20; n += 1) enter('one.test');
  expect(inFlight).toEqual([10, 10]);
  enter('two.test');
  expect(enter('three.test').thread).toBe(1);
  expect(enter('three.test', 'other').thread).toBe(0);
  expect(routing.leastLoaded()).toBe(0);
  expect(enter('one.test').thread).toBe(0);
});

test('a host keeps to one thread where it may not be spread', () => {
  const { enter, inFlight } = createHarness([true, true], 2, false);
  for (let n = 0; n < 40; n += 1) enter('one.test');
  expect(inFlight).toEqual([40, 0]);
});

test('a host whose thread has ended moves to one that is up, which is not started again for it', () => {
  const { enter, isUp, prepared } = createHarness([true, true]);
  const busy = enter('one.test');
  const first = enter('two.test');
  expect([busy.thread, first.thread]).toEqual([0, 1]);
  for (const place of [busy, first]) place.leave();
  isUp[1] = false;
  expect(enter('two.test').thread).toBe(0);
  expect([...prepared]).toEqual([]);
});
