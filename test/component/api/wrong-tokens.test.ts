import { expect, test } from 'vitest';
import type { TokenOwner } from '../../../src/domain/account.ts';
import { addressPrefix } from '../../../src/domain/address-prefix.ts';
import { createAuthenticator } from '../../../src/service/accounts/authenticate.ts';
import { createFailedTokens } from '../../../src/service/accounts/failed-tokens.ts';
import { tokenHash } from '../../../src/service/accounts/tokens.ts';
import { createRecordingLogger } from '../../support/loggers.ts';

const GOOD = 'a-token-that-is-known';
const NEW = 'a-token-not-used-before';
const ADMIN = 'the-token-of-the-operator';

function createSubject() {
  let ms = 0;
  const clock = {
    now: () => new Date(ms),
    advance: (by: number) => {
      ms += by;
    },
  };
  const logger = createRecordingLogger();
  const owners = new Map(
    [GOOD, NEW].map((token) => {
      const hash = tokenHash(token);
      const account = { accountId: 'a', tokenHashes: { normal: hash, javascript: '' } };
      return [hash, { account, tokenType: 'normal' } as unknown as TokenOwner];
    }),
  );
  const authenticator = createAuthenticator({
    accounts: {
      async findByTokenHash(hash) {
        return owners.get(hash);
      },
      list: async ({ after = '' }) =>
        after === '' ? [...owners.values()].slice(0, 1).map(({ account }) => account) : [],
    },
    adminToken: ADMIN,
    traits: { shared: false },
    clock,
    failedTokens: createFailedTokens({ clock, logger }),
  });
  return { clock, logger, authenticator };
}

const wrong = { kind: 'unauthenticated', reason: 'invalid_token' };
const slowed = { kind: 'exhausted', reason: 'too_many_wrong_tokens' };

test('a token is known once it has been right, or from the start, and a wrong one never', async () => {
  const { authenticator } = createSubject();
  await authenticator.learn();
  expect([GOOD, NEW, ADMIN, 'guess'].map((token) => authenticator.knows(token))).toEqual([
    true,
    false,
    true,
    false,
  ]);
  await authenticator.authenticate(NEW);
  await authenticator.authenticate('guess').catch(() => undefined);
  expect([authenticator.knows(NEW), authenticator.knows('guess')]).toEqual([true, false]);
});

test('an address that sends wrong tokens is slowed to one a second, and right ones always work', async () => {
  const { authenticator, clock } = createSubject();
  const from = '203.0.113.5';
  for (let n = 0; n < 100; n += 1) {
    await expect(authenticator.authenticate(`guess-${n}`, from)).rejects.toMatchObject(wrong);
  }
  await expect(authenticator.authenticate('guess', from)).rejects.toMatchObject(slowed);
  expect(() => authenticator.authenticateAdmin('guess', from)).toThrow(
    expect.objectContaining(slowed),
  );
  // Clients behind one proxy share its address: none of them is locked out by another.
  for (const token of [GOOD, NEW]) {
    expect(await authenticator.authenticate(token, from)).toMatchObject({ tokenType: 'normal' });
  }
  expect(() => authenticator.authenticateAdmin(ADMIN, from)).not.toThrow();
  await expect(authenticator.authenticate('guess', '203.0.113.6')).rejects.toMatchObject(wrong);
  clock.advance(1_000);
  await expect(authenticator.authenticate('guess', from)).rejects.toMatchObject(wrong);
  await expect(authenticator.authenticate('guess', from)).rejects.toMatchObject(slowed);
});

test('the log says so once a minute, without the token', async () => {
  const { authenticator, logger, clock } = createSubject();
  for (let n = 0; n < 20; n += 1) {
    await authenticator.authenticate(`secret-guess-${n}`, '::1').catch(() => undefined);
  }
  expect(logger.lines).toMatchObject([{ level: 'warn', fields: { remote: '::1', failures: 1 } }]);
  clock.advance(60_000);
  await authenticator.authenticate('secret-guess', '::1').catch(() => undefined);
  expect(logger.lines[1]).toMatchObject({ fields: { failures: 20 } });
  expect(JSON.stringify(logger.lines)).not.toContain('secret');
});

test.each([
  ['203.0.113.5', '203.0.113.5'],
  ['::ffff:203.0.113.5', '203.0.113.5'],
  ['2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'],
  ['2001:DB8:0:1::9', '2001:db8:0:1::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s counts as %s', (remote, prefix) => {
  expect(addressPrefix(remote)).toBe(prefix);
});
