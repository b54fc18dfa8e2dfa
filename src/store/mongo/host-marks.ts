import { createLruMap } from '../../domain/lru-map.ts';
import { indexBehind } from '../../domain/sorted-names.ts';

/** Hosts behind one name, up to another one; undefined for all that follow. */
export interface HostRange {
  readonly behind: string;
  readonly upTo: string | undefined;
}

/**
 * Hosts that this process has met in the queues of its crawlers. They divide a look by hosts into ranges
 * that one command reads. That there are such hosts need not be true any more, and there may be others.
 */
export interface HostMarks {
  note(crawlerId: string, host: string): void;
  /** The host was met no more. */
  forget(crawlerId: string, host: string): void;
  /**
   * The first `most` ranges of the one that is given, at least one. Each ends with a known host that is not in
   * `except`; the last range may end with the one that is given.
   */
  divide(
    crawlerId: string,
    range: HostRange,
    most: number,
    except: ReadonlySet<string>,
  ): HostRange[];
}

const MAX_CRAWLERS = 100;
const MAX_HOSTS = 2_000;

/** Makes an empty collection. */
export function createHostMarks(): HostMarks {
  const marks = createLruMap<string, string[]>({ maxEntries: MAX_CRAWLERS });

  return {
    note(crawlerId, host) {
      const hosts = marks.get(crawlerId) ?? [];
      const at = indexBehind(hosts, host);
      if (hosts[at - 1] === host || hosts.length >= MAX_HOSTS) return;
      hosts.splice(at, 0, host);
      marks.set(crawlerId, hosts);
    },
    forget(crawlerId, host) {
      const hosts = marks.get(crawlerId) ?? [];
      const at = indexBehind(hosts, host) - 1;
      if (hosts[at] === host) hosts.splice(at, 1);
    },
    divide(crawlerId, { behind, upTo }, most, except) {
      const hosts = marks.get(crawlerId) ?? [];
      const ranges: HostRange[] = [];
      let last = behind;
      for (let at = indexBehind(hosts, behind); ; at += 1) {
        const host = hosts[at];
        if (host !== undefined && except.has(host)) continue;
        if (host === undefined || (upTo !== undefined && host >= upTo)) {
          ranges.push({ behind: last, upTo });
          break;
        }
        ranges.push({ behind: last, upTo: host });
        last = host;
        if (ranges.length >= most) break;
      }
      return ranges;
    },
  };
}
