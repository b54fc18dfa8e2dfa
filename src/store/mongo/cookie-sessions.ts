import { toWall } from '../../domain/clock.ts';
import {
  MAX_SESSIONS,
  mergeCookies,
  SESSION_MS,
  type SessionCookie,
} from '../../domain/session-cookies.ts';
import type { CookieSessionStore, ResultScope } from '../store.ts';
import type { Collections } from './collections.ts';
import { findIds } from './find-ids.ts';
import { isConflict, isDuplicate } from './mongo-errors.ts';

/** The cookies of sessions. */
export function createCookieSessions({
  cookieSessions,
  time,
}: Pick<Collections, 'cookieSessions' | 'time'>): CookieSessionStore {
  /** Removes the sessions of an account beyond the most it may have. */
  async function bound(accountId: string): Promise<void> {
    const newest = { sort: { usedAt: -1 }, skip: MAX_SESSIONS } as const;
    const surplus = await findIds(cookieSessions, { accountId }, newest);
    if (surplus.length > 0) await cookieSessions.deleteMany({ _id: { $in: surplus } });
  }

  return {
    async open(scope, name, moment) {
      const now = toWall(time, moment);
      const document = await cookieSessions.findOneAndUpdate(
        { _id: toId(scope, name), usedAt: { $gt: expiredAt(now) } },
        { $max: { usedAt: now } },
        { projection: { cookies: 1 } },
      );
      return document === null ? [] : mergeCookies(parseCookies(document.cookies), [], now);
    },

    async change(scope, name, changes, moment) {
      const now = toWall(time, moment);
      const { accountId } = scope;
      const _id = toId(scope, name);
      for (;;) {
        const before = await cookieSessions.findOne({ _id });
        const isAlive = before !== null && before.usedAt > expiredAt(now);
        const merged = mergeCookies(isAlive ? parseCookies(before.cookies) : [], changes, now);
        const written = { cookies: JSON.stringify(merged), mark: crypto.randomUUID() };
        if (before !== null) {
          const { matchedCount } = await cookieSessions.updateOne(
            { _id, mark: before.mark },
            { $set: written, $max: { usedAt: now } },
          );
          if (matchedCount === 1) return;
          continue;
        }
        try {
          await cookieSessions.insertOne({ _id, accountId, ...written, usedAt: now });
          return await bound(accountId);
        } catch (error) {
          // Another process inserted it, or conflicted with the write.
          if (!isDuplicate(error) && !isConflict(error)) throw error;
        }
      }
    },
  };
}

function toId({ accountId, tokenType }: ResultScope, name: string): string {
  return `${accountId}/${tokenType}/${name}`;
}

function expiredAt(now: Date): Date {
  return new Date(now.getTime() - SESSION_MS);
}

function parseCookies(text: string): SessionCookie[] {
  return JSON.parse(text) as SessionCookie[];
}
