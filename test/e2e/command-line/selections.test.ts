import { expect, test } from 'vitest';
import { NORMAL, type TestApp } from '../../support/app.ts';
import { type CommandLineEnd, runCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { startReceiver } from '../../support/receiver.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';

const shared = shareApp();

function runner(app: TestApp): (...args: string[]) => Promise<CommandLineEnd> {
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  return (...args) => runCommandLine(args, { env });
}

test('act removes all results or jobs only with a filter or --yes', async () => {
  await using site = await startSite();
  const app = shared();
  const run = runner(app);
  const shop = await createCrawler(app, 'shop');
  for (const n of [1, 2, 3]) await shop.stored(await shop.push(`${site.url}/page/${n}`));
  await shop.post('pause');
  for (const n of [4, 5]) await shop.push(`${site.url}/page/${n}`);
  const results = ['act', 'shop', 'remove-results'];
  const jobs = ['act', 'shop', 'remove-jobs'];

  for (const args of [
    results,
    [...results, '--host', ''],
    // Filters of jobs do not select results, nor the other way around.
    [...results, '--job-state', 'waiting'],
    jobs,
    [...jobs, '--outcome', 'completed'],
  ]) {
    const { code, stderr } = await run(...args);
    expect([args, code]).toEqual([args, 2]);
    expect(stderr).toMatch(
      /without a filter every (result|queued URL) of shop is removed \((3|2) of them\); give a filter, or --yes/,
    );
  }
  expect((await run(...results, '--estimate')).stdout).toBe('3 match\n');
  expect((await run(...jobs, '--estimate')).stdout).toBe('2 match\n');

  const one = await run(...results, '--url-contains', '/page/1');
  expect([one.code, one.stdout]).toEqual([0, '1 of 1 done\n']);
  const completed = await run(...results, '--outcome', 'completed', '--cb-status', '200');
  expect(completed.stdout).toBe('2 of 2 done\n');
  expect((await run(...jobs, '--yes')).stdout).toBe('2 of 2 done\n');
});

test('act replays or pushes again all only with a filter or --yes, and says how many they are', async () => {
  await using receiver = await startReceiver();
  await using site = await startSite();
  const app = shared();
  const run = runner(app);
  const hook = await createCrawler(app, 'hook', { callback_url: receiver.url });
  for (const n of [1, 2]) await hook.push(`${site.url}/page/${n}`);
  await eventually(async () => {
    expect((await run('deliveries', 'list', 'hook', '--state', 'delivered')).stdout).toMatch(
      /(\/page\/\d[\s\S]*){2}/,
    );
  });
  const replay = ['act', 'hook', 'replay'];
  for (const args of [
    replay,
    [...replay, '--url-contains', ''],
    [...replay, '--job-state', 'waiting'],
  ]) {
    const { code, stderr } = await run(...args);
    expect([args, code]).toEqual([args, 2]);
    expect(stderr).toContain(
      'without a filter every delivery of hook is made again (2 of them); give a filter, or --yes to do it',
    );
  }
  const again = await run('act', 'hook', 'push-again');
  expect(again.code).toBe(2);
  expect(again.stderr).toContain('every failed crawl of hook is pushed again (0 of them)');
  expect(receiver.deliveries).toHaveLength(2);
  expect((await run(...replay, '--delivery-state', 'delivered')).stdout).toBe('2 of 2 done\n');
  await eventually(async () => {
    const { activity } = await hook.details();
    expect([receiver.deliveries.length, activity.deliveries_pending]).toEqual([4, 0]);
  });
  expect((await run(...replay, '--yes')).stdout).toBe('2 of 2 done\n');
  await eventually(() => expect(receiver.deliveries).toHaveLength(6));
});

test('running jobs are no choice where they cannot be listed, and all refusals name the same states', async () => {
  const app = shared();
  const run = runner(app);
  const shop = await createCrawler(app, 'shop');
  for (const args of [
    ['jobs', 'list', 'shop', '--state', 'running'],
    ['act', 'shop', 'remove-jobs', '--job-state', 'running'],
  ]) {
    const { code, stderr } = await run(...args);
    expect([args, code]).toEqual([args, 2]);
    expect(stderr).toContain('Allowed choices are waiting, retrying, scheduled.');
  }
  const refusals = [
    await app.rest('GET', `${shop.path}/jobs?state=running`),
    await app.rest('GET', `${shop.path}/jobs?state=JOB_STATE_RUNNING`),
    await app.rest('GET', `${shop.path}/jobs?state=odd`),
  ];
  for (const { status, json } of refusals) {
    expect([status, json.code]).toEqual([422, 'invalid_state']);
    expect(json.error).toBe('state must be one of waiting, retrying, scheduled.');
  }
  const acted = await app.rest('POST', `${shop.path}/act`, {
    action: 'remove_jobs',
    job_state: 'running',
  });
  expect([acted.status, acted.json.error]).toEqual([
    422,
    'job_state must be one of waiting, retrying, scheduled.',
  ]);
});

test('to push again without a selection is refused without the name of a field', async () => {
  const app = shared();
  const run = runner(app);
  const shop = await createCrawler(app, 'shop');
  const refused = await run('--json', 'jobs', 'again', 'shop');
  expect(refused.code).toBe(2);
  expect(JSON.parse(refused.stderr)).toEqual({
    error: {
      message: 'Select failed crawls by batch, reason, original_status, from, to or rids.',
      reason: 'missing_selection',
    },
  });
  const { status, json } = await app.rest('POST', `${shop.path}/push_again`, {});
  expect([status, json.code]).toEqual([422, 'missing_selection']);
  expect(json).not.toHaveProperty('field');
});
