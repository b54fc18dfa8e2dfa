import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Call } from '../../../src/api/method.ts';
import { whileAuthenticated } from '../../../src/api/while-authenticated.ts';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { DomainError, invalidToken } from '../../../src/domain/errors.ts';
import { createTokenWatch } from '../../../src/service/accounts/token-watch.ts';

const owner = { account: { accountId: 'a' }, tokenType: 'normal' } as TokenOwner;
const call = { caller: { token: 'old', owner }, signal: new AbortController().signal } as Call;

/** A watch of a token that is wrong from the second look on. */
function replacedToken() {
  let looks = 0;
  return createTokenWatch({
    everyMs: 5,
    authenticator: {
      async authenticate() {
        looks += 1;
        if (looks > 1) throw invalidToken('It was replaced.');
        return owner;
      },
    },
  });
}

test('a stream ends as unauthenticated, whether it waits, throws what aborts it, or ends by itself', async () => {
  const waits = (signal: AbortSignal) => setTimeout(60_000, undefined, { signal });
  async function* waiting(signal: AbortSignal) {
    yield 1;
    await waits(signal);
  }
  async function* ending(signal: AbortSignal) {
    yield 1;
    await waits(signal).catch(() => undefined);
  }
  for (const open of [waiting, ending]) {
    const seen: number[] = [];
    const read = async () => {
      for await (const each of whileAuthenticated(replacedToken(), call, open)) {
        seen.push(each);
      }
    };
    await expect(read()).rejects.toMatchObject({ kind: 'unauthenticated' });
    expect(seen).toEqual([1]);
  }
});

test('what a stream with a right token throws is thrown', async () => {
  const fault = new DomainError('not_found', 'gone', 'It is gone.');
  const watch = createTokenWatch({ authenticator: { authenticate: async () => owner } });
  // oxlint-disable-next-line require-yield -- it fails before
  async function* failing(): AsyncGenerator<number> {
    throw fault;
  }
  await expect(whileAuthenticated(watch, call, failing).next()).rejects.toBe(fault);
});
