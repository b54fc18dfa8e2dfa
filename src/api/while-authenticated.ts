import type { TokenOwner } from '../domain/account.ts';
import type { TokenWatch } from '../service/accounts/token-watch.ts';
import type { Call } from './method.ts';

/**
 * Opens a stream of a caller, and ends it soon after the caller's token has stopped being right.
 * Throws `unauthenticated` then.
 */
export async function* whileAuthenticated<Message>(
  tokenWatch: TokenWatch,
  call: Call,
  owner: TokenOwner,
  open: (signal: AbortSignal) => AsyncIterable<Message>,
): AsyncGenerator<Message, void, undefined> {
  using watched = tokenWatch.watch(call.caller?.token ?? '', owner);
  try {
    yield* open(AbortSignal.any([call.signal, watched.signal]));
  } catch (error) {
    // What the stream waits for may throw an error of its own when it is aborted.
    watched.signal.throwIfAborted();
    throw error;
  }
  watched.signal.throwIfAborted();
}
