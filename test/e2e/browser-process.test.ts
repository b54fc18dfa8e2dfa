import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBrowserPool } from '../../src/engine/browser/browser-pool.ts';
import { createBrowserTurns } from '../../src/engine/browser/browser-turns.ts';
import { findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { browserProcesses } from '../../src/engine/browser/process-watch.ts';
import type { BrowserPage } from '../../src/engine/browser/running-browser.ts';
import { JAVASCRIPT, startApp, type TestApp } from '../support/app.ts';
import {
  chromiumsOf,
  crawlInBrowser,
  descendants,
  environmentOf,
  htmlRoute,
} from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { silentLogger } from '../support/loggers.ts';
import { startProcess } from '../support/service-process.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const routes = {
  '/script': htmlRoute(
    '<div id="out"></div><script>out.textContent = "made by " + "script";</script>',
  ),
  '/late': htmlRoute(
    '<div id="out"></div><script>setTimeout(() => { out.textContent = "late " + "content"; }, 700);</script>',
  ),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({ env: { NETWORK_ALLOW: site.host, BROWSER_PAGES: '4' } });
  await crawl();
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, `${site.url}/script`, parameters);

/** The process of a page's browser. */
async function browserOf(page: BrowserPage): Promise<number> {
  const { processInfo } = await page.sendToBrowser('SystemInfo.getProcessInfo', undefined);
  return processInfo.find(({ type }) => type === 'browser')?.id ?? 0;
}

/** Nothing listens there; these pages go nowhere. */
const nowhere = { proxyServer: 'http://127.0.0.1:9' };

describe('a browser', () => {
  test('that is killed while pages are opened fails none for long', async () => {
    for (let round = 0; round < 3; round += 1) {
      const crawls = Array.from({ length: 4 }, () => crawl());
      await eventually(() => expect(chromiumsOf(process.pid)).not.toEqual([]));
      for (const pid of chromiumsOf(process.pid)) process.kill(pid, 'SIGKILL');
      for (const { cb_status: status, failure } of await Promise.all(crawls)) {
        expect([200, 599]).toContain(status);
        if (status === 599) expect(failure).toBe('page_crashed');
      }
    }
    expect(await crawl()).toMatchObject({ cb_status: 200 });
  });

  test('whose pages die while nobody uses them has others for the next crawls', async () => {
    for (let n = 0; n < 3; n += 1) await crawl();
    const [pid = 0] = chromiumsOf(process.pid);
    const renderers = descendants(pid, /--type=renderer/);
    expect(renderers).not.toEqual([]);
    for (const each of renderers) process.kill(each, 'SIGKILL');
    const statuses = await Promise.all([crawl(), crawl(), crawl()]);
    expect(statuses.map(({ cb_status: status, failure }) => failure ?? status)).toEqual([
      200, 200, 200,
    ]);
  });

  test.runIf(process.platform === 'linux')('tells its pages and its memory', async () => {
    await crawl();
    await eventually(async () => {
      const { text } = await app.rest('GET', '/metrics');
      const megabytes = (kind: string): number => {
        const name = `queued_crawler_browser_memory_bytes\\{kind="${kind}"\\} (\\d+)`;
        return Number(new RegExp(`^${name}$`, 'm').exec(text)?.[1]) / 1_048_576;
      };
      expect(text).toMatch(/^queued_crawler_browser_pages [1-4]$/m);
      expect(megabytes('browser')).toBeGreaterThan(5);
      expect(megabytes('renderer')).toBeGreaterThan(5);
    });
  });

  test('is replaced after a number of pages', async () => {
    const pool = createBrowserPool({
      chromiumPath: '',
      sandbox: 'off',
      turns: createBrowserTurns(1),
      logger: silentLogger,
      recycleAfter: 2,
    });
    const browsers = new Set<number>();
    for (let n = 0; n < 5; n++) {
      const page = await pool.open(nowhere);
      browsers.add(await browserOf(page));
      await page.close();
    }
    expect(browsers.size).toBe(3);
    await pool.close();
  });

  test('is watched with all its processes', async () => {
    await crawl();
    const [pid = 0] = chromiumsOf(process.pid);
    const seen = await browserProcesses(pid);
    expect(seen.map((each) => each.pid)).toEqual(
      expect.arrayContaining(descendants(pid, /--type=(gpu-process|utility|renderer|zygote)/)),
    );
    expect(new Set(seen.map(({ kind }) => kind))).toEqual(
      new Set([
        'browser',
        'other',
        ...(descendants(pid, /--type=renderer/).length > 0 ? ['renderer'] : []),
      ]),
    );
    expect(seen.every(({ bytes }) => bytes >= 0)).toBe(true);
    expect(seen[0]?.bytes).toBeGreaterThan(1_000_000);
  });
});

test('a service run by root warns at its start that Chromium has no sandbox', async () => {
  const isRoot = process.getuid?.() === 0;
  expect(app.log.some((line) => line.includes('without its sandbox'))).toBe(isRoot);
  await using own = await startApp({ env: { CHROMIUM_SANDBOX: 'off' } });
  expect(own.log.join('')).not.toContain('without its sandbox');
});

// These look at no processes but their own.
describe.concurrent('at the same time as others', () => {
  test('a browser that does not answer is given up for another', async () => {
    const pool = createBrowserPool({
      chromiumPath: '',
      sandbox: 'off',
      turns: createBrowserTurns(2),
      logger: silentLogger,
      openMs: byLength(4_000, 8_000),
    });
    const first = await pool.open(nowhere);
    const hung = await browserOf(first);
    await first.close();
    process.kill(hung, 'SIGSTOP');
    const page = await pool.open(nowhere);
    expect(await page.send('Page.enable')).toEqual({});
    await eventually(() => expect(existsSync(`/proc/${hung}`)).toBe(false));
    await pool.close();
  });

  test('a browser that cannot be started fails no job: they wait until it can', async () => {
    await using folder = await temporaryFolder();
    const broken = join(folder.path, 'broken');
    const wrapper = join(folder.path, 'chromium');
    await writeFile(broken, '');
    const real = await findChromium('');
    await writeFile(wrapper, `#!/bin/sh\n[ -e ${broken} ] && exit 1\nexec ${real} "$@"\n`, {
      mode: 0o700,
    });
    await using own = await startApp({
      env: { NETWORK_ALLOW: site.host, CHROMIUM_PATH: wrapper, CHROMIUM_SANDBOX: 'off' },
    });
    expect(await crawlInBrowser(own, `${site.url}/script`)).toMatchObject({
      cb_status: 599,
      failure: 'browser_unavailable',
    });
    expect(own.log.join('')).toContain('CHROMIUM_PATH');
    await own.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
    const items = Array.from({ length: 10 }, (_, n) => ({ url: `${site.url}/script?${n}` }));
    const push = await own.rest('POST', `/crawler/${JAVASCRIPT}/js/push_batch`, { items });
    expect(push.status).toBeLessThan(300);
    await eventually(() =>
      expect(own.log.join('').split('CHROMIUM_PATH').length).toBeGreaterThan(2),
    );
    await rm(broken);
    await eventually(async () => {
      const { json } = await own.rest('GET', `/storage/total_count?token=${JAVASCRIPT}`);
      expect(json.totalCount).toBe(10);
    });
    const { text } = await own.rest('GET', `/storage/total_count?token=${JAVASCRIPT}`);
    expect(text).not.toContain('599');
  });

  test.runIf(process.getuid?.() === 0)(
    'a browser that cannot be started because a sandbox is required says so',
    async () => {
      await using own = await startApp({
        env: { NETWORK_ALLOW: site.host, CHROMIUM_SANDBOX: 'require' },
      });
      expect(own.log.join('')).not.toContain('without its sandbox');
      expect(await crawlInBrowser(own, `${site.url}/script`)).toMatchObject({
        cb_status: 599,
        failure: 'browser_unavailable',
      });
      expect(own.log.join('')).toContain('CHROMIUM_SANDBOX requires');
    },
  );

  test('Chromium is told none of the secrets of the service, and what it leaves behind when killed is removed', async () => {
    await using folder = await temporaryFolder();
    // Every service removes what others have left in the folder for temporary files.
    const temporary = join(folder.path, 'tmp');
    await mkdir(temporary);
    const env = {
      DATA_DIR: folder.path,
      TMPDIR: temporary,
      CHROMIUM_PATH: (await findChromium('')) ?? '',
      SMTP_URL: 'smtp://user:secret@127.0.0.1:1',
    };
    await using service = await startProcess(env);
    const query = new URLSearchParams({ token: JAVASCRIPT, url: `${site.url}/script` });
    expect((await service.rest('GET', `/?${query}`)).text).toContain('made by script');
    const pid = service.process.pid ?? 0;
    const processes = descendants(pid, /chrom/);
    expect(processes.length).toBeGreaterThan(1);
    for (const each of processes) {
      expect(environmentOf(each).join()).not.toMatch(/secret|token-for-tests|TOKEN|SMTP|DATA_DIR/);
    }
    const [browser = 0] = chromiumsOf(pid);
    expect(environmentOf(browser).join()).toContain('HOME=');
    const command = (await readFile(`/proc/${browser}/cmdline`, 'utf8')).split('\0');
    const profile =
      command.find((each) => each.startsWith('--user-data-dir='))?.split('=')[1] ?? '';
    await service.kill9();
    await eventually(() => expect(existsSync(`/proc/${browser}`)).toBe(false));
    expect(existsSync(profile)).toBe(true);
    await using next = await startProcess(env);
    await next.rest('GET', `/?${query}`);
    expect(existsSync(profile)).toBe(false);
  });

  test('SIGTERM lets a crawl in the browser end, and leaves no browser behind', async () => {
    await using folder = await temporaryFolder();
    await using service = await startProcess({ DATA_DIR: folder.path, SHUTDOWN_SECONDS: '60' });
    await service.rest('POST', `/crawler/${JAVASCRIPT}`, { name: 'js' });
    const push = await service.rest(
      'GET',
      `/?token=${JAVASCRIPT}&crawler=js&callback=true&page_wait=${byLength(1_000, 2_500)}&url=${encodeURIComponent(`${site.url}/late`)}`,
    );
    const hits = site.hits('/late');
    await eventually(() => expect(site.hits('/late')).toBe(hits + 1));
    const browsers = chromiumsOf(service.process.pid);
    expect(browsers).not.toEqual([]);
    expect(await service.terminate()).toBe(0);
    expect(browsers.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    await using next = await startProcess({ DATA_DIR: folder.path });
    const stored = await next.rest('GET', `/storage?token=${JAVASCRIPT}&rid=${push.json.rid}`);
    expect(stored.text).toContain('late content');
  });
});

test('a browser without pages ends, and the next page starts another', async () => {
  const pool = createBrowserPool({
    chromiumPath: '',
    sandbox: 'off',
    turns: createBrowserTurns(1),
    logger: silentLogger,
    idleMs: 50,
  });
  const before = chromiumsOf(process.pid);
  const started = () => chromiumsOf(process.pid).filter((pid) => !before.includes(pid));
  await (await pool.open(nowhere)).close();
  await eventually(() => expect(started()).toEqual([]));
  const page = await pool.open(nowhere);
  expect(await page.send('Page.enable')).toEqual({});
  expect(started()).toHaveLength(1);
  await page.close();
  await pool.close();
});
