import { networkInterfaces } from 'node:os';

/** Interfaces come and go while a process runs; reading them takes well under a millisecond. */
const READ_AGAIN_MS = 5_000;

/**
 * Answers with the addresses of this machine's interfaces as the system spells them, at most five
 * seconds old.
 */
export function createOwnAddresses(): () => readonly string[] {
  let addresses: readonly string[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - readAt < READ_AGAIN_MS) return addresses;
    readAt = now;
    addresses = Object.values(networkInterfaces()).flatMap((each) =>
      (each ?? []).map(({ address }) => address),
    );
    return addresses;
  };
}
