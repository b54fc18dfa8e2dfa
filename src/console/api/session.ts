import { Code, ConnectError } from '@connectrpc/connect';
import { computed, effect, signal } from '@preact/signals';
import { TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { noteServiceDate } from '../format/service-clock.ts';
import { type Fault, faultOf } from './fault.ts';

/** A token of the session, by what it may do. The token itself is in a cookie that no script reads. */
export type TokenKind = 'normal' | 'javascript' | 'admin';

/** Who is signed in. */
export interface Session {
  /** The account's name; empty for an operator. */
  readonly account: string;
  readonly tokens: readonly TokenKind[];
}

const PATH = '/console/session';
/** How often a visible tab renews the session. */
const RENEW_MS = 10 * 60_000;
/** When a session that could not be read is read again. */
const AGAIN_MS = 2_000;

/** The present session; undefined while nobody is signed in, null until that is known. */
export const session = signal<Session | undefined | null>(null);

/** Whether the session belongs to an account, and so has crawlers. */
export const isAccount = computed(() => tokenTypes.value.length > 0);

/** Whether the session has the operator's token. */
export const isOperator = computed(() => session.value?.tokens.includes('admin') === true);

/** The token types whose crawlers the session can address. */
export const tokenTypes = computed((): readonly TokenType[] => {
  const tokens = session.value?.tokens ?? [];
  return [
    ...(tokens.includes('normal') ? [TokenType.NORMAL] : []),
    ...(tokens.includes('javascript') ? [TokenType.JAVASCRIPT] : []),
  ];
});

/** Why the last session ended, unless its user ended it; for the sign-in page. */
export const endedBecause = signal('');

/** Why it is not known yet who is signed in; undefined while that was not refused. */
export const unread = signal<Fault | undefined>(undefined);

/** The account of the last session that had one. An operator’s session without its token keeps it. */
export const lastAccount = signal('');

/** Tells the other tabs of this browser that the session has changed. */
const SIGNED_OUT = 'signed out';
const otherTabs = new BroadcastChannel('console-session');
/** Reads a session again that could not be read. */
let again: ReturnType<typeof setTimeout> | undefined;

/**
 * Calls `forget` when another account signs in than the last one. What a person has typed outlives a
 * session that has ended, if it is the same account that signs in again.
 */
export function onOtherAccount(forget: () => void): void {
  effect(() => {
    if (lastAccount.value !== '') forget();
  });
}

/** Reads who is signed in, and renews the session while the tab is seen. */
export function followSession(): void {
  const renew = (): void => void checkSession();
  otherTabs.addEventListener('message', ({ data }) => {
    if (data === SIGNED_OUT) end('');
    else renew();
  });
  setInterval(() => {
    if (!document.hidden && session.peek()) renew();
  }, RENEW_MS);
  renew();
}

/** Reads whether the session is still valid. */
export async function checkSession(): Promise<void> {
  const found = await call('GET').catch((error: unknown) => {
    unread.value = faultOf(error);
  });
  // Without an answer it stays as it is; what is shown says that the service does not answer.
  if (!found) {
    clearTimeout(again);
    if (session.peek() === null) again = setTimeout(() => void checkSession(), AGAIN_MS);
  } else if (found.tokens.length > 0) take(found);
  else {
    // Its user may have ended it in another tab in the meantime.
    end(session.peek() ? 'The session has ended, or its token was replaced.' : endedBecause.peek());
  }
}

/** Signs in with a token, or adds it to the session. Throws ConnectError when it is refused. */
export async function signIn(token: string): Promise<void> {
  take(await call('POST', { token }));
  otherTabs.postMessage('');
}

/** Signs out in all tabs. */
export async function signOut(): Promise<void> {
  await call('DELETE');
  end('');
  otherTabs.postMessage(SIGNED_OUT);
}

function end(why: string): void {
  endedBecause.value = why;
  session.value = undefined;
}

function take(found: Session): void {
  const { account } = found;
  if (account !== '' && account !== lastAccount.peek()) {
    // What is kept of an account ends with its session, and nothing of it is passed on to another.
    if (lastAccount.peek() !== '') session.value = undefined;
    lastAccount.value = account;
  }
  // The same session is the same object, so that nothing is drawn anew.
  if (JSON.stringify(found) !== JSON.stringify(session.peek())) session.value = found;
}

async function call(method: string, body?: object): Promise<Session> {
  const askedAt = Date.now();
  const reply = await fetch(PATH, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  noteServiceDate(reply.headers.get('date'), askedAt);
  const answer = (await reply.json().catch((cause: unknown) => {
    // Something between has answered.
    throw new ConnectError('', Code.Unavailable, undefined, undefined, cause);
  })) as Session & { readonly error?: string };
  if (reply.status === 401) {
    const text = 'No account has this token, and it is not the operator’s.';
    throw new ConnectError(text, Code.Unauthenticated);
  }
  if (!reply.ok) {
    const code = reply.status === 429 ? Code.ResourceExhausted : Code.FailedPrecondition;
    throw new ConnectError(answer.error ?? '', code);
  }
  return answer;
}
