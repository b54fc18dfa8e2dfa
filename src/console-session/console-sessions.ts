import type { TokenOwner } from '../domain/account.ts';
import type { Clock } from '../domain/clock.ts';
import { DomainError } from '../domain/errors.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { BodyFault, receiveBody } from '../http/receive-body.ts';
import { requestNote } from '../http/request-note.ts';
import { jsonReply, type Reply } from '../rest/reply.ts';
import type { Authenticator } from '../service/accounts/authenticate.ts';
import type { SealedSession, SessionSeal, TokenKind } from './sealed-session.ts';

/** Where the console signs in and out. */
export const SESSION_PATH = '/console/session';

/** The header that names the token of the session which a call is made with. */
export const TOKEN_HEADER = 'x-console-token';

/** A session ends when no tab has renewed it for this long. */
export const IDLE_MS = 12 * 3_600_000;
/** A session ends this long after it has begun. */
export const LONGEST_MS = 7 * 24 * 3_600_000;

/**
 * The header that names the account which a call is meant for. A page may not know yet that another
 * account has signed in since.
 */
export const ACCOUNT_HEADER = 'x-console-account';

const MAX_BYTES = 4 * 1024;
const KINDS: readonly TokenKind[] = ['normal', 'javascript', 'admin'];

/** The sessions of the console. The service keeps none: each is in a cookie. */
export interface ConsoleSessions {
  /**
   * Gives a request of the console the token that it names, as if it had been sent in
   * `authorization`. Whether the token is valid is checked after that, as for every call.
   */
  authorize(request: AnyRequest): void;
  /**
   * Answers {@link SESSION_PATH}: POST signs in with a token, or adds it to the session; GET tells
   * who is signed in, and renews the session; DELETE signs out. Throws `DomainError`.
   */
  answer(request: AnyRequest): Promise<Reply>;
}

/** Who is signed in, as the console is told. */
interface SignedIn {
  /** The account's name; empty for an operator only, and when nobody is signed in. */
  readonly account: string;
  readonly tokens: readonly TokenKind[];
}

/** Makes the sessions. With `isPublicTls` browsers reach the service by TLS only. */
export function createConsoleSessions(deps: {
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'isAdmin'>;
  readonly seal: SessionSeal;
  readonly clock: Clock;
  readonly isPublicTls: () => boolean;
}): ConsoleSessions {
  const { authenticator, seal, clock, isPublicTls } = deps;

  const isSecure = (request: AnyRequest): boolean => isPublicTls() || isTls(request);

  /**
   * The name of the cookie. With this prefix a browser takes it from this host by TLS only. Without
   * it, another host of the domain could replace the session by one of its own account.
   */
  const cookieName = (request: AnyRequest): string =>
    isSecure(request) ? `__Host-${seal.cookieName}` : seal.cookieName;

  /** The session of a request, unless it has ended. */
  function sessionOf(request: AnyRequest): SealedSession | undefined {
    const sealed = cookieOf(request, cookieName(request));
    const session = sealed === undefined ? undefined : seal.open(sealed);
    if (session === undefined) return undefined;
    const now = clock.now().getTime();
    const isOver = now >= session.used + IDLE_MS || now >= session.since + LONGEST_MS;
    return isOver ? undefined : session;
  }

  /** Whose a token is: undefined of the operator's. Throws `unauthenticated`. */
  async function ownerOf(token: string, remote: string): Promise<TokenOwner | undefined> {
    if (authenticator.isAdmin(token)) return undefined;
    return await authenticator.authenticate(token, remote);
  }

  /** The tokens of a session that are still valid, and their account. */
  async function validOf(session: SealedSession | undefined) {
    const tokens: SealedSession['tokens'] = {};
    let account: TokenOwner['account'] | undefined;
    for (const kind of KINDS) {
      const token = session?.tokens[kind];
      if (token === undefined) continue;
      try {
        // Without an address: a replaced token is no guess.
        const owner = await ownerOf(token, '');
        account ??= owner?.account;
        Object.assign(tokens, { [kind]: token });
      } catch (error) {
        if (!isUnauthenticated(error)) throw error;
      }
    }
    return { tokens, account };
  }

  function reply(request: AnyRequest, session: SealedSession, account: string): Reply {
    const tokens = KINDS.filter((kind) => session.tokens[kind] !== undefined);
    const signedIn: SignedIn = { account: tokens.length === 0 ? '' : account, tokens };
    const now = clock.now().getTime();
    const leftMs = Math.min(IDLE_MS, session.since + LONGEST_MS - now);
    const isEnded = tokens.length === 0;
    // Without a session there is no cookie to remove, and none is set.
    const name = cookieName(request);
    const isChanged = !isEnded || cookieOf(request, name) !== undefined;
    return jsonReply(JSON.stringify(signedIn), 200, {
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      ...(isChanged
        ? {
            'set-cookie': [
              `${name}=${isEnded ? '' : seal.seal({ ...session, account: signedIn.account, used: now })}`,
              'Path=/',
              `Max-Age=${isEnded ? 0 : Math.floor(leftMs / 1_000)}`,
              'HttpOnly',
              'SameSite=Strict',
              ...(isSecure(request) ? ['Secure'] : []),
            ].join('; '),
          }
        : {}),
    });
  }

  async function signIn(request: AnyRequest): Promise<Reply> {
    const token = await readToken(request);
    const owner = await ownerOf(token, requestNote(request).remote);
    const present = sessionOf(request);
    const { tokens, account } = await validOf(present);
    if (owner !== undefined && account !== undefined) {
      if (owner.account.accountId !== account.accountId) {
        const message = `That is no token of account ${account.name}.`;
        throw new DomainError('conflict', 'other_account', message, { field: 'token' });
      }
    }
    const since = present?.since ?? clock.now().getTime();
    const kind: TokenKind = owner?.tokenType ?? 'admin';
    const session = { tokens: { ...tokens, [kind]: token }, since, used: since };
    return reply(request, session, (account ?? owner?.account)?.name ?? '');
  }

  return {
    authorize(request) {
      const { headers } = request;
      const kind = headers[TOKEN_HEADER];
      if (kind === undefined || headers.authorization !== undefined) return;
      if (!isOwnOrigin(request)) return;
      if (!isTokenKind(kind)) return;
      const session = sessionOf(request);
      const token = session?.tokens[kind];
      if (token === undefined) return;
      const meant = headers[ACCOUNT_HEADER];
      if (meant !== undefined && session?.account !== undefined && meant !== session.account)
        return;
      headers.authorization = `Bearer ${token}`;
      // No path has an operator's token in it. `/accounts/` has a name there, which is logged.
      if (kind === 'admin') return;
      // The reference page calls paths that have the token in them.
      request.url = request.url?.replace(/^(\/[a-z_]+\/)-(?=[/?]|$)/, `$1${token}`) ?? '/';
    },
    async answer(request) {
      if (!isOwnOrigin(request)) {
        throw new DomainError(
          'forbidden',
          'other_origin',
          'The console calls its own origin only.',
        );
      }
      if (request.method === 'POST') return signIn(request);
      const present = request.method === 'DELETE' ? undefined : sessionOf(request);
      const { tokens, account } = await validOf(present);
      const none = { since: 0, used: 0 };
      return reply(request, { ...none, ...present, tokens }, account?.name ?? '');
    },
  };
}

function isTokenKind(kind: unknown): kind is TokenKind {
  return KINDS.some((each) => each === kind);
}

/** A person's own navigation is `none`. Programs send no such header. */
const OWN: readonly unknown[] = [undefined, 'same-origin', 'none'];

/**
 * Whether a request is from a page of the service itself. Requests of other sites carry no cookie
 * (`SameSite`), but a page of another port of this host is of the same site. Browsers send this
 * header where it matters; pages cannot set it.
 */
function isOwnOrigin({ headers }: AnyRequest): boolean {
  return OWN.includes(headers['sec-fetch-site']);
}

async function readToken(request: AnyRequest): Promise<string> {
  // A form of another site cannot send this type.
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? '')) {
    throw missingToken();
  }
  let token: unknown;
  try {
    const body = await receiveBody(request, MAX_BYTES);
    token = (JSON.parse(body.toString()) as { token?: unknown } | null)?.token;
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof BodyFault)) throw error;
  }
  if (typeof token !== 'string' || token === '') throw missingToken();
  return token;
}

function missingToken(): DomainError {
  const message = 'The token is missing: send it as JSON, {"token": "..."}.';
  return new DomainError('unauthenticated', 'missing_token', message, { field: 'token' });
}

function cookieOf({ headers }: AnyRequest, name: string): string | undefined {
  for (const each of (headers.cookie ?? '').split(';')) {
    const at = each.indexOf('=');
    if (each.slice(0, at).trim() === name) return each.slice(at + 1).trim();
  }
  return undefined;
}

function isTls({ socket }: AnyRequest): boolean {
  return (socket as { readonly encrypted?: boolean }).encrypted === true;
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof DomainError && error.kind === 'unauthenticated';
}
