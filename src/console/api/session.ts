import { computed, signal } from '@preact/signals';
import { TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';

/** Who is signed in. Tokens are in memory, and in the tab's session storage when asked for. */
export interface Session {
  /** The account's name; empty for an operator. */
  readonly account: string;
  readonly normal?: string;
  readonly javascript?: string;
  readonly admin?: string;
}

const KEY = 'queued-crawler-session';

/** The present session; undefined while nobody is signed in. */
export const session = signal<Session | undefined>(restore());

/** Whether the session belongs to an account, and so has crawlers. */
export const isAccount = computed(
  () => session.value?.normal !== undefined || session.value?.javascript !== undefined,
);

/** Whether the session has the operator's token. */
export const isOperator = computed(() => session.value?.admin !== undefined);

/** The token types whose crawlers the session can address. */
export const tokenTypes = computed((): readonly TokenType[] => [
  ...(session.value?.normal === undefined ? [] : [TokenType.NORMAL]),
  ...(session.value?.javascript === undefined ? [] : [TokenType.JAVASCRIPT]),
]);

/** Starts a session, or adds to it. With `keep` it survives a reload of this tab. */
export function startSession(next: Session, keep: boolean): void {
  session.value = next;
  if (keep) sessionStorage.setItem(KEY, JSON.stringify(next));
}

/** Adds tokens to the session, and keeps them where the session is kept. */
export function addToSession(more: Partial<Session>): void {
  const next = { account: '', ...session.value, ...more };
  startSession(next, sessionStorage.getItem(KEY) !== null);
}

/** Why the last session ended, unless its user ended it; for the sign-in page. */
export const endedBecause = signal('');

/** Ends the session and forgets its tokens. */
export function endSession(because = ''): void {
  sessionStorage.removeItem(KEY);
  endedBecause.value = because;
  session.value = undefined;
}

function restore(): Session | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') ?? undefined;
  } catch {
    // Something else wrote there: sign in again.
    return undefined;
  }
}
