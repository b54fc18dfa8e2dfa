import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { LookupAnswer } from './lookup.ts';

/** Files that the system keeps its names in. */
export interface WatchedFile<Content> {
  /** The content as it is now, at most a second old. Empty for a file that cannot be read. */
  read(): Promise<Content>;
}

const LOOK_AGAIN_MS = 1_000;
/** Lists against advertising have some 100,000 lines. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads a file when it is first asked for, and again when its time of change or its length is
 * another.
 */
export function watchFile<Content>(
  path: string,
  parse: (text: string) => Content,
): WatchedFile<Content> {
  let content = parse('');
  let version = '';
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  async function look(): Promise<void> {
    try {
      const { mtimeMs, size } = await stat(path);
      const found = `${mtimeMs} ${size}`;
      if (found === version) return;
      content = parse(size > MAX_BYTES ? '' : await readFile(path, 'utf8'));
      version = found;
    } catch {
      // A machine without the file has no such names.
      content = parse('');
      version = '';
    }
  }

  return {
    async read() {
      if (performance.now() - lookedAt >= LOOK_AGAIN_MS) {
        looking ??= look().finally(() => {
          lookedAt = performance.now();
          looking = undefined;
        });
        await looking;
      }
      return content;
    },
  };
}

/** The names of `/etc/hosts`, in lower case, with their addresses in order. */
export function parseHosts(text: string): ReadonlyMap<string, readonly LookupAnswer[]> {
  const hosts = new Map<string, LookupAnswer[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#', 1)[0] ?? '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      const known = hosts.get(key) ?? [];
      known.push({ address, family: family === 6 ? 6 : 4 });
      hosts.set(key, known);
    }
  }
  return hosts;
}

/**
 * What of `/etc/resolv.conf` is used here: the domains that names without a dot are searched in.
 */
export function parseSearchDomains(text: string): readonly string[] {
  let domains: string[] = [];
  for (const line of text.split('\n')) {
    const [key, ...values] = line.trim().split(/\s+/);
    if (key === 'search' || key === 'domain') domains = values;
  }
  return domains.filter((domain) => domain !== '.').slice(0, 6);
}
