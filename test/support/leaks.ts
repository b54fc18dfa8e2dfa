import { readdirSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import { eventually } from './eventually.ts';

// A setup file: after each test file it fails the run when servers, sockets, timers, threads or processes are left.

/** Longer than the time limits of 30 s that libraries set. What never ends still fails. */
const GONE_MS = 120_000;

// Their pipes are opened by the first code that looks at them, such as `import process from
// 'node:process'`.
void [process.stdin, process.stdout, process.stderr];

const before = resources();

// Hooks run in reverse order: this one after those of the file.
afterAll(async () => {
  await eventually(
    () => {
      const left = leftovers();
      if (left.length > 0) throw new Error(left.join(', '));
    },
    { timeoutMs: GONE_MS, what: 'the end of all that the file opened' },
  );
}, 2 * GONE_MS);

/** What is left that was not there at the start, described. */
function leftovers(): string[] {
  const now = resources();
  const grown = [...now].filter(([kind, count]) => count > (before.get(kind) ?? 0));
  const left = grown.map(([kind, count]) => `${count - (before.get(kind) ?? 0)} more ${kind}`);
  if (left.length > 0) left.push(...handles());
  return [...left, ...children().map(({ pid, command }) => `process ${pid}: ${command}`)];
}

/** How many resources of each kind keep the process running. */
function resources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** Servers and sockets with their addresses. */
function handles(): string[] {
  // Node has no public way to the handles themselves.
  const { _getActiveHandles: active } = process as unknown as {
    _getActiveHandles(): {
      readonly address?: () => AddressInfo | string | null;
      readonly remotePort?: number;
    }[];
  };
  return active.call(process).flatMap((handle) => {
    const address = typeof handle.address === 'function' ? handle.address() : undefined;
    if (address === undefined || address === null || typeof address === 'string') return [];
    if (address.port === undefined) return [];
    const to = handle.remotePort === undefined ? '' : ` to ${handle.remotePort}`;
    return [`${handle.constructor.name} on port ${address.port}${to}`];
  });
}

/** Child processes that still run; none where there is no /proc. */
function children(): { readonly pid: string; readonly command: string }[] {
  try {
    const threads = readdirSync('/proc/self/task');
    return threads
      .flatMap((thread) => read(`/proc/self/task/${thread}/children`).trim().split(' '))
      .filter((pid) => pid !== '')
      .map((pid) => ({ pid, command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }))
      .filter(({ command }) => command !== '');
  } catch {
    // Not Linux.
    return [];
  }
}

/** A file's text; empty when its process or thread has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
