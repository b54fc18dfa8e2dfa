import type { TopologyDescription } from 'mongodb';
import { expect, test } from 'vitest';
import { whyUnreachable } from '../../../src/store/mongo/why-unreachable.ts';

function unreachable(type: string, servers: readonly string[], setName: string | null = null) {
  const described = servers.map((each, i) => [`server${i}:27017`, { type: each }] as const);
  const reason = { type, setName, servers: new Map(described) };
  return whyUnreachable(reason as unknown as TopologyDescription);
}

test.each([
  // What replicaSet names is another set: the driver forgets the server.
  ['ReplicaSetNoPrimary', [], 'rs1', /belongs to the replica set "rs1" of replicaSet/],
  // `mongod --replSet` before `rs.initiate()`.
  ['Unknown', ['RSGhost'], null, /rs\.initiate\(\)/],
  ['ReplicaSetNoPrimary', ['RSSecondary', 'Unknown'], 'rs0', /has no primary/],
  ['Unknown', ['Unknown'], null, undefined],
  // The driver has said why it reaches none of them.
  ['ReplicaSetNoPrimary', ['Unknown', 'Unknown'], 'rs0', undefined],
] as const)('of %s with servers %j in set %s it says %s', (type, servers, setName, text) => {
  const why = unreachable(type, servers, setName);
  if (text === undefined) expect(why).toBeUndefined();
  else expect(why).toMatch(text);
});

test('of an error without servers it says nothing', () => {
  expect(whyUnreachable(undefined)).toBeUndefined();
});
