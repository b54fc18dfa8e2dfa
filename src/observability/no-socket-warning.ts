import { MINUTE_MS } from '../domain/durations.ts';
import type { Logger } from '../domain/logger.ts';

const ADVICE: Readonly<Record<string, string>> = {
  EMFILE:
    'this process has no file descriptors left, so crawls and deliveries wait: raise its limit (LimitNOFILE of systemd, ulimit -n of a shell, --ulimit nofile of Docker)',
  ENFILE:
    'this machine has no file descriptors left, so crawls and deliveries wait: raise fs.file-max',
  EADDRNOTAVAIL:
    'this machine has no ports left for connections to an address, so crawls and deliveries wait: widen net.ipv4.ip_local_port_range',
};
const NO_MEMORY =
  'this machine has no memory left for sockets, so crawls and deliveries wait for some';

/**
 * Makes the warning, by the code of the system, that connections were not made because this process
 * had no socket. At most one line a minute is logged.
 */
export function createNoSocketWarning(logger: Logger): (code: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (code) => {
    if (performance.now() - warnedAt < MINUTE_MS) return;
    warnedAt = performance.now();
    logger.warn({ code }, ADVICE[code] ?? NO_MEMORY);
  };
}
