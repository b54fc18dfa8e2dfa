import type { TokenOwner } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Authenticator } from './authenticate.ts';

/** A token that a stream was opened with. */
export interface WatchedToken extends Disposable {
  /** As it was last read. */
  readonly owner: TokenOwner;
  /** Aborted with `unauthenticated` once the token is replaced or its account removed. */
  readonly signal: AbortSignal;
}

/** Ends streams whose token is no longer right, as it refuses the calls that are made with it. */
export interface TokenWatch {
  /** Watches a token that is right now, until it is disposed of. */
  watch(token: string, owner: TokenOwner): WatchedToken;
}

interface Entry {
  readonly ending: AbortController;
  owner: TokenOwner;
  streams: number;
}

/** Makes the watch of a process. It reads each token once in `everyMs` (1,000) while a stream has it. */
export function createTokenWatch(deps: {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly everyMs?: number;
}): TokenWatch {
  const { authenticator, everyMs = 1_000 } = deps;
  const entries = new Map<string, Entry>();
  let timer: NodeJS.Timeout | undefined;

  async function look(token: string, entry: Entry): Promise<void> {
    try {
      entry.owner = await authenticator.authenticate(token);
    } catch (error) {
      // While the database is away, nobody knows that the token is wrong.
      if (!(error instanceof DomainError) || error.kind !== 'unauthenticated') return;
      if (entries.get(token) === entry) entries.delete(token);
      entry.ending.abort(error);
    }
  }

  async function lookAtAll(): Promise<void> {
    await Promise.all([...entries].map(([token, entry]) => look(token, entry)));
    timer = undefined;
    schedule();
  }

  function schedule(): void {
    if (entries.size > 0) timer ??= setTimeout(() => void lookAtAll(), everyMs).unref();
  }

  return {
    watch(token, owner) {
      const entry = entries.get(token) ?? { ending: new AbortController(), owner, streams: 0 };
      entry.streams += 1;
      entries.set(token, entry);
      schedule();
      return {
        get owner() {
          return entry.owner;
        },
        signal: entry.ending.signal,
        [Symbol.dispose]() {
          entry.streams -= 1;
          if (entry.streams === 0 && entries.get(token) === entry) entries.delete(token);
        },
      };
    },
  };
}
