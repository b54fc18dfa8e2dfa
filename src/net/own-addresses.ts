import { networkInterfaces } from 'node:os';

/**
 * Interfaces appear and disappear while a process runs; reading them takes less than a millisecond.
 */
const READ_AGAIN_MS = 5_000;

/**
 * Makes a function that returns the addresses of this machine's interfaces, as the system spells
 * them and at most five seconds old.
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
