import { type ServiceClock, toWall, wallNow } from '../../domain/clock.ts';
import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { Logger } from '../../domain/logger.ts';
import { createLruMap } from '../../domain/lru-map.ts';
import {
  type CookieChanges,
  mergeCookies,
  type SessionCookie,
} from '../../domain/session-cookies.ts';
import type { CookieSession } from '../../engine/engine.ts';
import type { CookieSessionStore, ResultScope } from '../../store/store.ts';

/** A session, for one crawl. */
export interface CrawlSession extends CookieSession {
  /** Resolves when what the crawl changed is in the store, or could not be stored. */
  written(): Promise<void>;
}

/**
 * The sessions of all crawls of this process, over those in the store. A session is read at most
 * once a second, and written when a crawl has changed a cookie; crawls that end during a write
 * share the next one.
 */
export interface CookieSessions {
  /** The session of that name of a token. */
  open(scope: ResultScope, name: string): CrawlSession;
}

/** What another process changed is seen after this. */
const FRESH_MS = 1_000;
/** Sessions that are remembered; each takes 64 KiB at most. */
const MAX_KNOWN = 500;

interface KnownSession {
  readonly scope: ResultScope;
  readonly name: string;
  cookies: readonly SessionCookie[];
  readAt: number;
  reading: Promise<void> | undefined;
  /** What is being written, and what is written next. */
  writing: Batch | undefined;
  next: Batch | undefined;
}

interface Batch {
  readonly changes: CookieChanges[];
  written: Promise<void>;
}

/** Makes the sessions; reads nothing yet. */
export function createCookieSessions(deps: {
  readonly store: CookieSessionStore;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}): CookieSessions {
  const { store, clock, logger } = deps;
  const known = createLruMap<string, KnownSession>({
    maxEntries: MAX_KNOWN,
    isPinned: ({ reading, writing, next }) => (reading ?? writing ?? next) !== undefined,
  });

  function find(scope: ResultScope, name: string): KnownSession {
    return getOrInsert(known, `${scope.accountId} ${scope.tokenType} ${name}`, () => ({
      scope,
      name,
      cookies: [],
      readAt: -Infinity,
      reading: undefined,
      writing: undefined,
      next: undefined,
    }));
  }

  async function load(session: KnownSession): Promise<void> {
    const now = clock.now();
    const unwritten = (): CookieChanges[] =>
      [session.writing, session.next].flatMap((batch) => batch?.changes ?? []);
    // A write that ends while the store answers may be missing in the answer.
    const before = unwritten();
    const cookies = await store.open(session.scope, session.name, now);
    const changes = [...before, ...unwritten().filter((each) => !before.includes(each))];
    session.cookies = mergeCookies(cookies, changes, toWall(clock, now));
    session.readAt = now.getTime();
  }

  async function write(session: KnownSession, batch: Batch): Promise<void> {
    await session.writing?.written;
    session.writing = batch;
    session.next = undefined;
    try {
      await store.change(session.scope, session.name, batch.changes, clock.now());
    } catch (err) {
      // The pages of the crawls are good; only later crawls miss the cookies.
      logger.warn({ err, ...session.scope }, 'cookies of a session were not stored');
    } finally {
      session.writing = undefined;
    }
  }

  function change(session: KnownSession, changes: CookieChanges): Promise<void> {
    session.cookies = mergeCookies(session.cookies, [changes], wallNow(clock));
    if (session.next !== undefined) {
      session.next.changes.push(changes);
      return session.next.written;
    }
    const batch: Batch = { changes: [changes], written: Promise.resolve() };
    session.next = batch;
    batch.written = write(session, batch);
    return batch.written;
  }

  return {
    open({ accountId, tokenType }, name) {
      const scope = { accountId, tokenType };
      let written = Promise.resolve();
      return {
        async read() {
          const session = find(scope, name);
          if (clock.now().getTime() - session.readAt >= FRESH_MS) {
            session.reading ??= load(session).finally(() => {
              session.reading = undefined;
            });
            await session.reading;
          }
          return session.cookies;
        },
        change(changes) {
          written = change(find(scope, name), changes);
        },
        written: () => written,
      };
    },
  };
}
