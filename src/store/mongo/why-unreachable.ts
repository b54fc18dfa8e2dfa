import { ServerType, type TopologyDescription, TopologyType } from 'mongodb';

/**
 * Says why no server could be chosen where the driver says only that time ran out: its error names no
 * server that answers but is not a primary. Returns undefined where it has nothing to add.
 */
export function whyUnreachable(reason: TopologyDescription | undefined): string | undefined {
  if (reason === undefined) return undefined;
  const types = [...reason.servers.values()].map(({ type }) => type);
  if (types.length === 0 && reason.setName !== null) {
    return `no server there belongs to the replica set "${reason.setName}" of replicaSet`;
  }
  if (types.includes(ServerType.RSGhost)) {
    return 'the replica set was not initiated: run `mongosh --eval "rs.initiate()"` once';
  }
  const answered = types.some((type) => type !== ServerType.Unknown);
  if (reason.type === TopologyType.ReplicaSetNoPrimary && answered) {
    return 'the replica set has no primary';
  }
  return undefined;
}
