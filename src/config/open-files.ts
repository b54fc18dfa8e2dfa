import { readFileSync } from 'node:fs';

/** Each crawl, delivery, call and idle connection holds a socket: 2,000 crawls and 512 posts at once. */
const ENOUGH = 4_096;

/** How many files and sockets this process may have open; undefined where that cannot be read. */
function openFilesLimit(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  } catch {
    // Only Linux has that file.
    return undefined;
  }
}

/** What to raise if the limit of open files is below what full load takes; undefined if it is not, or unknown. */
export function lowOpenFilesLimit(
  limit = openFilesLimit(),
): { readonly finding: string; readonly advice: string } | undefined {
  if (limit === undefined || limit >= ENOUGH) return undefined;
  return {
    finding: `This process may have ${limit} files and sockets open; crawls and deliveries wait beyond that.`,
    advice: `Raise the limit to at least ${ENOUGH}: LimitNOFILE of systemd, ulimit -n of a shell, --ulimit nofile of Docker.`,
  };
}
