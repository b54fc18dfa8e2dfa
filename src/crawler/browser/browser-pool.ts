import { readFile } from 'node:fs/promises';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
} from 'playwright-core';
import type { Logger } from '../../domain/logger.ts';
import { findChromium } from './chromium-binary.ts';

/** What the browser is run with. */
export interface BrowserPoolDeps {
  /** `CHROMIUM_PATH`; empty for the one of the packages. */
  readonly chromiumPath: string;
  /** Most pages at once. */
  readonly pages: number;
  readonly logger: Logger;
  /** After how many pages a new browser takes over. Default 200. */
  readonly recycleAfter?: number;
  /** A renderer that takes more memory than this is killed, its page fails. Default 1 GiB. */
  readonly maxRendererBytes?: number;
}

/** A context of its own for one page. */
export interface LentContext extends AsyncDisposable {
  readonly context: BrowserContext;
}

/** Contexts of one browser that is started on demand, replaced after many pages, when it crashed, or when a page cannot be closed. */
export interface BrowserPool {
  /** Waits for its turn. Rejects with the signal's reason, or `BrowserUnavailable`. */
  lend(options: BrowserContextOptions, signal: AbortSignal): Promise<LentContext>;
  close(): Promise<void>;
}

/** No browser can be started; the message says what to set. */
export class BrowserUnavailable extends Error {
  override readonly name = 'BrowserUnavailable';
}

const LAUNCH_MS = 30_000;
const CLOSE_MS = 5_000;
const WATCH_MS = 500;
const MIB = 1024 * 1024;

const ARGS = [
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--dns-prefetch-disable',
  '--no-pings',
  '--font-render-hinting=none',
  '--js-flags=--max-old-space-size=512',
  // Every page has a proxy of its own. What belongs to no page has nowhere to go, and no name is looked up here.
  '--proxy-server=http://127.0.0.1:9',
  '--proxy-bypass-list=<-loopback>',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  // Without this, peer connections would go around the proxy.
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
];

interface Running {
  readonly browser: Browser;
  opened: number;
  lent: number;
  retired: boolean;
}

/** Makes a pool; no browser runs before the first page. */
export function createBrowserPool(deps: BrowserPoolDeps): BrowserPool {
  const { logger, recycleAfter = 200, maxRendererBytes = 1_024 * MIB } = deps;
  const turns = createTurns(deps.pages);
  let current: Promise<Running> | undefined;
  let closed = false;
  const all = new Set<Running>();

  async function launch(): Promise<Running> {
    const executablePath = await findChromium(deps.chromiumPath).catch((cause: unknown) => {
      logger.error({ err: cause }, 'Chromium cannot be run; set CHROMIUM_PATH to another');
      throw new BrowserUnavailable('Chromium cannot be run', { cause });
    });
    if (executablePath === undefined) {
      logger.error({}, 'No Chromium for JavaScript crawls; set CHROMIUM_PATH');
      throw new BrowserUnavailable('There is no Chromium on this machine');
    }
    const browser = await start(executablePath).catch((cause: unknown) => {
      logger.error({ err: cause }, 'Chromium does not start; set CHROMIUM_PATH to another');
      throw new BrowserUnavailable('Chromium does not start', { cause });
    });
    const running: Running = { browser, opened: 0, lent: 0, retired: false };
    all.add(running);
    const unwatch = await watchMemory(browser, maxRendererBytes, logger, () => retire(running));
    browser.once('disconnected', () => {
      unwatch();
      all.delete(running);
      if (!running.retired && !closed) logger.warn({}, 'Chromium has ended; another is started');
      retire(running);
    });
    return running;
  }

  async function start(executablePath: string): Promise<Browser> {
    const options = {
      executablePath,
      headless: true,
      args: ARGS,
      timeout: LAUNCH_MS,
      // A signal to the service is the service's: what is being crawled may end.
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
    };
    // Chromium refuses its sandbox to root, and some containers refuse it to everybody.
    if (process.getuid?.() === 0) return chromium.launch({ ...options, chromiumSandbox: false });
    try {
      return await chromium.launch({ ...options, chromiumSandbox: true });
    } catch (error) {
      logger.warn({ err: error }, 'Chromium does not start in its sandbox; it runs without');
      return chromium.launch({ ...options, chromiumSandbox: false });
    }
  }

  function retire(running: Running): void {
    if (running.retired) return;
    running.retired = true;
    current = undefined;
    if (running.lent === 0) void running.browser.close().catch(() => undefined);
  }

  async function take(): Promise<Running> {
    for (;;) {
      if (closed) throw new BrowserUnavailable('The browser was closed');
      current ??= launch();
      const starting = current;
      try {
        const running = await starting;
        if (!running.retired) return running;
      } catch (error) {
        // The next crawl tries again: the operator may have repaired it.
        if (current === starting) current = undefined;
        throw error;
      }
    }
  }

  async function giveBack(running: Running, context: BrowserContext): Promise<void> {
    const closing = context.close().then(
      () => true,
      () => true,
    );
    const inTime = await Promise.race([closing, sleep(CLOSE_MS)]);
    running.lent -= 1;
    if (inTime !== true) {
      logger.warn({}, 'A page does not close; another browser takes over');
      retire(running);
    }
    if (running.retired && running.lent === 0) {
      await Promise.race([running.browser.close().catch(() => undefined), sleep(CLOSE_MS)]);
    }
  }

  return {
    async lend(options, signal) {
      const leave = await turns.enter(signal);
      try {
        const running = await take();
        running.lent += 1;
        running.opened += 1;
        if (running.opened >= recycleAfter) {
          running.retired = true;
          current = undefined;
        }
        const context = await running.browser.newContext(options).catch((error: unknown) => {
          running.lent -= 1;
          throw error;
        });
        return {
          context,
          async [Symbol.asyncDispose]() {
            await giveBack(running, context);
            leave();
          },
        };
      } catch (error) {
        leave();
        throw error;
      }
    },
    async close() {
      closed = true;
      await Promise.all(
        [...all].map((running) => {
          running.retired = true;
          return Promise.race([running.browser.close().catch(() => undefined), sleep(CLOSE_MS)]);
        }),
      );
    },
  };
}

/** Lets in so many at once, in order. */
function createTurns(most: number) {
  const waiting: (() => void)[] = [];
  let inside = 0;
  return {
    async enter(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      if (inside >= most) {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const onAbort = (): void => {
          waiting.splice(waiting.indexOf(resolve), 1);
          reject(signal.reason as Error);
        };
        signal.addEventListener('abort', onAbort, { once: true });
        waiting.push(resolve);
        await promise;
        signal.removeEventListener('abort', onAbort);
      } else inside += 1;
      let left = false;
      return () => {
        if (left) return;
        left = true;
        const next = waiting.shift();
        if (next === undefined) inside -= 1;
        else next();
      };
    },
  };
}

/**
 * Kills renderers that grow beyond the limit, for V8's own does not count what is outside its heap, and retires a browser whose
 * own process does. Linux only.
 */
async function watchMemory(
  browser: Browser,
  maxBytes: number,
  logger: Logger,
  onGrown: () => void,
): Promise<() => void> {
  if (process.platform !== 'linux') return () => undefined;
  const session = await browser.newBrowserCDPSession();
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look()
      // The browser has just ended.
      .catch(() => undefined)
      .finally(() => {
        looking = false;
      });
  }, WATCH_MS);
  timer.unref();

  async function look(): Promise<void> {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo');
    for (const { id, type } of processInfo) {
      if (!/^(renderer|browser)$/.test(type) || (await residentBytes(id)) <= maxBytes) continue;
      if (type === 'browser') {
        onGrown();
        continue;
      }
      logger.warn({ limit: maxBytes }, 'A page took too much memory and was ended');
      process.kill(id, 'SIGKILL');
    }
  }

  return () => clearInterval(timer);
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
