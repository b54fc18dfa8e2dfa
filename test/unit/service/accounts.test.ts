import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRid } from '../../../src/domain/rid.ts';
import { ensureDefaultAccount } from '../../../src/service/accounts/default-account.ts';
import { ASYNC_CRAWLER, ensureAsyncCrawler } from '../../../src/service/crawlers/async-crawler.ts';
import { makeRecord } from '../../contract/store/outcomes.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { createUseCases, openEmbeddedStore } from '../../support/use-cases.ts';

let opened: Awaited<ReturnType<typeof openEmbeddedStore>>;
beforeAll(async () => {
  opened = await openEmbeddedStore();
});
afterAll(() => opened[Symbol.asyncDispose]());

const NOT_FOUND = { kind: 'not_found', reason: 'account_not_found', field: 'name' };

let count = 0;
function setUp(options: Parameters<typeof createUseCases>[1] = {}) {
  count += 1;
  return { ...createUseCases(opened.store, options), name: `name-${count}` };
}

test('a new account has two tokens that work and nothing in its queues', async () => {
  const { accounts, authenticator, name } = setUp();
  const { account, queued, tokens } = await accounts.create(name, ' owner@example.com ');
  expect([account.name, account.email, queued]).toEqual([name, 'owner@example.com', 0]);
  for (const tokenType of ['normal', 'javascript'] as const) {
    const owner = await authenticator.authenticate(tokens[tokenType]);
    expect([owner.account.accountId, owner.tokenType]).toEqual([account.accountId, tokenType]);
  }
  expect((await accounts.get(name)).account).toEqual(account);
});

test('preset tokens are taken, unless another account has one', async () => {
  const { accounts, authenticator, name } = setUp();
  const preset = { normal: `preset-token-of-${name}` };
  expect((await accounts.create(name, '', preset)).tokens.normal).toBe(preset.normal);
  await authenticator.authenticate(preset.normal);
  await expect(accounts.create(`${name}-2`, '', preset)).rejects.toMatchObject({
    kind: 'conflict',
    reason: 'token_taken',
  });
});

test.each([
  [{ name: 'two words' }, 'invalid', 'name'],
  [{ email: 'a@b, c@d' }, 'invalid', 'email'],
  [{ limits: { queueBytes: -1 } }, 'invalid', 'limits.queue_bytes'],
  [{ limits: { requestsPerSecond: 0.5 } }, 'invalid', 'limits.requests_per_second'],
] as const)('an account of %j is refused', async (given, kind, field) => {
  const { accounts, name } = setUp();
  const input = { name, email: '', limits: {}, ...given };
  const created = accounts.create(input.name, input.email, {}, input.limits);
  await expect(created).rejects.toMatchObject({ kind, field });
});

test('a name is given once', async () => {
  const { accounts, name } = setUp();
  await accounts.create(name, '');
  await expect(accounts.create(name, '')).rejects.toMatchObject({
    kind: 'conflict',
    reason: 'account_exists',
    field: 'name',
  });
});

test('an update changes what it names, and new limits hold at once', async () => {
  const { accounts, authenticator, crawlers, name } = setUp();
  const { tokens } = await accounts.create(name, 'a@example.com');
  const owner = () => authenticator.authenticate(tokens.normal);
  await crawlers.create(await owner(), 'first', { settings: {} });
  await accounts.update(name, { limits: { crawlers: 1 } });
  const second = crawlers.create(await owner(), 'second', { settings: {} });
  await expect(second).rejects.toMatchObject({ reason: 'crawlers_quota_exceeded' });
  const { account, quotas } = await accounts.update(name, { email: '', limits: {} });
  expect([account.email, account.limits]).toEqual(['', {}]);
  expect(quotas?.crawlers).toEqual({ limit: 0, used: 1 });
  await crawlers.create(await owner(), 'second', { settings: {} });
});

test('crawls of an account whose storage is full continue as soon as its quota is raised', async () => {
  const { accounts, quotas, clock, name } = setUp();
  const { account } = await accounts.create(name, '', {}, { storageBytes: 1 });
  const { accountId } = account;
  const now = clock.now();
  await opened.store.results.put(
    { accountId, tokenType: 'normal' },
    makeRecord({ rid: createRid(now), url: 'https://example.com/' }),
    now,
    new Date(now.getTime() + 60_000),
  );
  expect(await quotas.holds(accountId)).toMatchObject([{ reason: 'storage_full' }]);
  await accounts.update(name, { limits: {} });
  expect(await quotas.holds(accountId)).toEqual([]);
});

test('a rotated token works instead of the old one, the other token stays', async () => {
  const { accounts, authenticator, name } = setUp();
  const { tokens } = await accounts.create(name, '');
  await authenticator.authenticate(tokens.normal);
  const token = await accounts.rotateToken(name, 'normal');
  await authenticator.authenticate(token);
  await authenticator.authenticate(tokens.javascript);
  await expect(authenticator.authenticate(tokens.normal)).rejects.toMatchObject({
    reason: 'invalid_token',
  });
});

test('where processes share the database, a rotated token stops at once at all of them', async () => {
  const { accounts, name } = setUp();
  const other = createUseCases(opened.store, { sharesDatabase: true });
  const { tokens } = await accounts.create(name, '');
  await other.authenticator.authenticate(tokens.normal);
  await accounts.rotateToken(name, 'normal');
  await expect(other.authenticator.authenticate(tokens.normal)).rejects.toMatchObject({
    reason: 'invalid_token',
  });
});

test('a list has the accounts by name, page by page', async () => {
  const { accounts, name } = setUp();
  const names = ['a', 'b', 'c'].map((letter) => `${name}-${letter}`);
  for (const each of names.toReversed()) await accounts.create(each, '');
  const page = async (after: string) =>
    (await accounts.list(2, after)).map(({ account }) => account.name);
  expect(await page(name)).toEqual(names.slice(0, 2));
  expect((await page(names[1] ?? ''))[0]).toBe(names[2]);
});

test('an account with crawlers is not removed', async () => {
  const { accounts, authenticator, crawlers, name } = setUp();
  const { tokens } = await accounts.create(name, '');
  const owner = await authenticator.authenticate(tokens.normal);
  await crawlers.create(owner, 'shop', { settings: {} });
  await expect(accounts.remove(name)).rejects.toMatchObject({
    kind: 'failed_precondition',
    reason: 'account_has_crawlers',
  });
  await crawlers.remove(owner, 'shop');
  await accounts.remove(name);
});

test('a removed account is gone with its async crawls and its tokens', async () => {
  const { accounts, authenticator, pushing, calls, clock, name } = setUp();
  const { tokens } = await accounts.create(name, '');
  const owner = await authenticator.authenticate(tokens.normal);
  await ensureAsyncCrawler({ crawlers: opened.store.crawlers, clock, defaults: {} }, owner);
  await pushing.push(owner, ASYNC_CRAWLER, { url: 'https://example.com/', parameters: {} });
  await accounts.remove(name);
  expect(calls.aborted).toHaveLength(1);
  await expect(authenticator.authenticate(tokens.normal)).rejects.toMatchObject({
    reason: 'invalid_token',
  });
  await expect(accounts.get(name)).rejects.toMatchObject(NOT_FOUND);
});

test('an unknown account cannot be read, changed or removed', async () => {
  const { accounts, name } = setUp();
  await expect(accounts.get(name)).rejects.toMatchObject(NOT_FOUND);
  await expect(accounts.update(name, { email: '' })).rejects.toMatchObject(NOT_FOUND);
  await expect(accounts.rotateToken(name, 'normal')).rejects.toMatchObject(NOT_FOUND);
  await expect(accounts.remove(name)).rejects.toMatchObject(NOT_FOUND);
});

test('the first start makes account default; a later one changes what is preset', async () => {
  await using empty = await openEmbeddedStore();
  const { accounts, authenticator, store } = createUseCases(empty.store);
  const logger = createRecordingLogger();
  const start = (preset: Parameters<typeof ensureDefaultAccount>[1], email = '') =>
    ensureDefaultAccount({ accounts: store.accounts, management: accounts, logger }, preset, email);
  const made = await start({});
  await authenticator.authenticate(made?.normal);
  expect(await start({})).toBeUndefined();
  await authenticator.authenticate(made?.normal);
  expect(logger.lines).toEqual([]);
  expect(await start({ normal: 'preset-normal-token' }, 'a@example.com')).toBeUndefined();
  expect(logger.lines).toMatchObject([
    { level: 'warn', fields: { account: 'default', tokens: ['normal'] } },
  ]);
  expect(await start({ normal: 'preset-normal-token' })).toBeUndefined();
  expect(logger.lines).toHaveLength(1);
  authenticator.reset();
  await authenticator.authenticate('preset-normal-token');
  await authenticator.authenticate(made?.javascript);
  await expect(authenticator.authenticate(made?.normal)).rejects.toMatchObject({
    reason: 'invalid_token',
  });
  expect((await accounts.get('default')).account.email).toBe('a@example.com');
});
