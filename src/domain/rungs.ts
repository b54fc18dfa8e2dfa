import { invalidField } from './errors.ts';
import { DIRECT } from './proxy-pools.ts';

/** A way to crawl that a ladder has: an engine, and a pool of proxies. */
export interface Rung {
  /** As people write it: `direct`, `pool:NAME`, `browser:direct` or `browser:pool:NAME`. */
  readonly name: string;
  /** Whether the browser crawls, whatever the token of the crawler. */
  readonly inBrowser: boolean;
  /** Name of the pool; `direct` for no proxy. */
  readonly pool: string;
}

/** Most rungs of a ladder. */
const MAX_RUNGS = 8;

const RUNG = /^(?<browser>browser:)?(?:direct|pool:(?<pool>[\w.-]{1,64}))$/;

/** Parses the rungs of a ladder, the first one first. Throws `invalid` naming `field`. */
export function checkRungs(field: string, text: string): readonly Rung[] {
  const names = text.split(',').map((name) => name.trim());
  const rungs = names.map((name) => {
    const rung = toRung(name);
    if (rung !== undefined) return rung;
    // The URL of a proxy may have a password.
    const what = name.includes('@') || name.includes('://') ? 'a URL' : `"${name.slice(0, 80)}"`;
    throw invalidField(
      field,
      `${field}: ${what} is no rung; a rung is direct, pool:NAME, browser:direct or browser:pool:NAME.`,
    );
  });
  const repeated = names.find((name, at) => names.indexOf(name) !== at);
  if (repeated !== undefined) throw invalidField(field, `${field} has the rung ${repeated} twice.`);
  if (rungs.length < 2 || rungs.length > MAX_RUNGS) {
    throw invalidField(field, `${field} takes 2 to ${MAX_RUNGS} rungs.`);
  }
  return rungs;
}

/** The rungs of a checked text. */
export function parseRungs(text: string): readonly Rung[] {
  return text.split(',').flatMap((name) => toRung(name) ?? []);
}

function toRung(name: string): Rung | undefined {
  const groups = RUNG.exec(name)?.groups;
  if (groups === undefined) return undefined;
  const { browser, pool = DIRECT } = groups;
  return { name, inBrowser: browser !== undefined, pool };
}
