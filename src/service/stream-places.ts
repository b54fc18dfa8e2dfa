import { addCount } from '../domain/add-count.ts';
import { DomainError } from '../domain/errors.ts';

/** The most streams of one kind that are open at once in this process. */
export interface StreamLimits {
  /** For the message of a refusal, such as "streams of results". */
  readonly what: string;
  readonly perAccount: number;
  readonly all: number;
}

/** Takes a place for a stream of an account, which is given back when it is disposed of. */
export type EnterStream = (accountId: string) => Disposable;

/** Counts the streams of one kind. A stream beyond the limits throws `exhausted`. */
export function createStreamPlaces({ what, perAccount, all: most }: StreamLimits): EnterStream {
  const taken = new Map<string, number>();
  let all = 0;
  return (accountId) => {
    const own = taken.get(accountId) ?? 0;
    if (own >= perAccount || all >= most) {
      const limit = own >= perAccount ? perAccount : most;
      throw new DomainError(
        'exhausted',
        'too_many_streams',
        `There are ${limit} ${what} already; one has to end first.`,
        { retryAfterMs: 10_000, metadata: { limit } },
      );
    }
    addCount(taken, accountId, 1);
    all += 1;
    return {
      [Symbol.dispose]() {
        all -= 1;
        addCount(taken, accountId, -1);
      },
    };
  };
}
