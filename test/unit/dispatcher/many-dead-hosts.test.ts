import { expect, test } from 'vitest';
import { pageMs, simulate } from '../../../bench/scale/simulated-crawl.ts';
import { byLength } from '../../support/length.ts';

// By the time of a model, with the dispatcher's own lanes and read-ahead.

test('thousands of hosts that do not answer hold the others up no longer than their tries take', () => {
  const isDead = (host: number): boolean => host % 3 === 0;
  const hosts = byLength(3_500, 8_000);
  const counts = new Int32Array(hosts).fill(2);
  for (const large of [1_001, 2_001, 3_001]) counts[large] = byLength(2_000, 5_000);
  const concurrency = 300;
  const { at, tries } = simulate(counts, concurrency, {}, isDead);
  const pagesMs = counts.reduce((sum, n, host) => sum + (isDead(host) ? 0 : n * pageMs(host)), 0);
  const triesMs = tries.ofDead * pageMs(0, isDead);
  // No slot is free while a host that answers has URLs.
  expect(at.get(1)).toBeLessThan(((pagesMs + triesMs) / concurrency / 1_000) * 1.1);
  // At first three tries of each, then one at growing intervals.
  expect(tries.ofDead).toBeLessThan((hosts / 3) * 12);
});

test('a host that does not answer is put aside, however many others are asked between its URLs', () => {
  const isDead = (host: number): boolean => host % 3 === 0;
  const hosts = byLength(3_000, 7_500);
  const counts = new Int32Array(hosts).fill(10);
  const { at } = simulate(counts, 300, {}, isDead);
  const pagesMs = counts.reduce((sum, n, host) => sum + (isDead(host) ? 0 : n * pageMs(host)), 0);
  // Three tries put a host aside. Otherwise one of its URLs would be tried in each round.
  const firstTriesMs = 3 * (hosts / 3) * pageMs(0, isDead);
  expect(at.get(0.9)).toBeLessThan(((pagesMs + firstTriesMs) / 300 / 1_000) * 1.1);
});

test('tries of hosts that do not answer take a tenth of the slots from the others', () => {
  const isDead = (host: number): boolean => host % 5 === 0;
  const counts = new Int32Array(2_000).fill(byLength(20, 60));
  const concurrency = 10;
  const { at } = simulate(counts, concurrency, {}, isDead);
  const pagesMs = counts.reduce((sum, n, host) => sum + (isDead(host) ? 0 : n * pageMs(host)), 0);
  // Three tries put a host aside. At most a quarter of an hour apart, the further ones would take 13 slots.
  const firstTriesMs = 3 * 400 * pageMs(0, isDead);
  expect(at.get(1)).toBeLessThan(((pagesMs / 0.9 + firstTriesMs) / concurrency / 1_000) * 1.1);
});

test('large hosts have all slots that more dead hosts leave than one look goes through', () => {
  const isDead = (host: number): boolean => host >= 5;
  const counts = new Int32Array(12_000).fill(1).fill(byLength(3_000, 8_000), 0, 5);
  const { at } = simulate(counts, 1_000, {}, isDead);
  const pagesMs = counts.reduce((sum, n, host) => sum + (isDead(host) ? 0 : n * pageMs(host)), 0);
  const firstTriesMs = 3 * 11_995 * pageMs(99, isDead);
  expect(at.get(1)).toBeLessThan(((pagesMs / 0.9 + firstTriesMs) / 1_000 / 1_000) * 1.1);
});

test('more hosts than are kept wait for their delay, each by itself', () => {
  const counts = new Int32Array(8_000).fill(2);
  const politeness = { maxPerHost: 1, delayMs: 60_000, robotsTxt: false };
  const none = (): boolean => false;
  const { at } = simulate(counts, 300, { politeness }, none);
  const pagesMs = counts.reduce((sum, n, host) => sum + n * pageMs(host, none), 0);
  // The second page of the last host waits for a minute after its first one.
  expect(at.get(1)).toBeLessThan((pagesMs / 300 / 1_000) * 1.5 + 2 * 60);
});
