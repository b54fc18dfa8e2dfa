import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { oneAtATime } from '../domain/one-at-a-time.ts';
import type { LookupAnswer } from './lookup.ts';

/** A file of the system that is read again when it changes. */
export interface WatchedFile<Content> {
  /** The parsed content, at most a second old; that of an empty file when it cannot be read. */
  read(): Promise<Content>;
}

const LOOK_AGAIN_MS = 1_000;
/** Hosts files that block advertising have some 100,000 lines. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads a file at the first `read`, and again when its modification time or its length has changed.
 */
export function watchFile<Content>(
  path: string,
  parse: (text: string) => Content,
): WatchedFile<Content> {
  let content = parse('');
  let version = '';
  let lookedAt = Number.NEGATIVE_INFINITY;

  const look = oneAtATime(async () => {
    try {
      const { mtimeMs, size } = await stat(path);
      const found = `${mtimeMs} ${size}`;
      if (found !== version) {
        content = parse(size > MAX_BYTES ? '' : await readFile(path, 'utf8'));
        version = found;
      }
    } catch {
      // Without the file there are no such names.
      content = parse('');
      version = '';
    }
    lookedAt = performance.now();
  });

  return {
    async read() {
      if (performance.now() - lookedAt >= LOOK_AGAIN_MS) await look();
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

/** The domains in which `/etc/resolv.conf` has names without a dot looked up. */
export function parseSearchDomains(text: string): readonly string[] {
  let domains: string[] = [];
  for (const line of text.split('\n')) {
    const [key, ...values] = line.trim().split(/\s+/);
    if (key === 'search' || key === 'domain') domains = values;
  }
  return domains.filter((domain) => domain !== '.').slice(0, 6);
}
