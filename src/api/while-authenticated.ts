import type { TokenWatch, WatchedToken } from '../service/accounts/token-watch.ts';
import { callerOf } from './caller-of.ts';
import type { Call } from './method.ts';

/**
 * Opens a stream of a caller, and ends it soon after the caller's token has stopped being right.
 * Throws `unauthenticated` then. `open` gets what aborts the stream, and the token's owner as last
 * read.
 */
export async function* whileAuthenticated<Message>(
  tokenWatch: TokenWatch,
  call: Call,
  open: (signal: AbortSignal, watched: Pick<WatchedToken, 'owner'>) => AsyncIterable<Message>,
): AsyncGenerator<Message, void, undefined> {
  using watched = tokenWatch.watch(call.caller?.token ?? '', callerOf(call));
  try {
    yield* open(AbortSignal.any([call.signal, watched.signal]), watched);
  } catch (error) {
    // What the stream waits for may throw an error of its own when it is aborted.
    watched.signal.throwIfAborted();
    throw error;
  }
  watched.signal.throwIfAborted();
}
