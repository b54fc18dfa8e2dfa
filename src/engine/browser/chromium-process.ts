import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { CrawlerIdentity } from '../http/user-agents.ts';
import { type CdpConnection, createCdpConnection } from './cdp-connection.ts';
import { libraryEnvironment } from './chromium-libraries.ts';
import type { ProfileFolder } from './profile-folders.ts';

/** A running Chromium. */
export interface ChromiumProcess {
  readonly pid: number;
  readonly cdp: CdpConnection;
  /** As `153.0.7899.0`. */
  readonly version: string;
  /** Marks its folder as in use. */
  touch(): Promise<void>;
  /**
   * Ends it and removes its folder. Unless `withinMs` is 0, it has that long to end by itself
   * before it is killed.
   */
  close(withinMs: number): Promise<void>;
}

/** How Chromium is started. */
export interface ChromiumOptions {
  readonly executablePath: string;
  readonly sandbox: boolean;
  readonly profile: ProfileFolder;
  /** A fontconfig file; undefined for that of the machine. */
  readonly fontsFile: string | undefined;
  /** With `named`, scripts of pages are told that the browser is automated (`navigator.webdriver`). */
  readonly identity: CrawlerIdentity;
  /** For what starts before its page can set it up; undefined for the browser's own. */
  readonly userAgent: string | undefined;
  /** Whether pages get WebGL, which software draws. */
  readonly webgl: boolean;
}

const START_MS = 30_000;
const LOG_BYTES = 2_000;
const DISABLED_FEATURES = [
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'MediaRouter',
  'OptimizationHints',
  'PaintHolding',
  'Translate',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'DestroyProfileOnBrowserClose',
];

const ARGS = [
  '--headless',
  '--accept-lang=en-US,en;q=0.9',
  '--remote-debugging-pipe',
  '--disable-gpu',
  '--disable-gpu-shader-disk-cache',
  '--hide-scrollbars',
  '--mute-audio',
  '--disable-quic',
  // What a mouse would tell: a machine without one says that nothing can hover.
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4',
  '--disable-background-networking',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-back-forward-cache',
  '--disable-breakpad',
  '--disable-component-update',
  '--disable-default-apps',
  // Containers have only 64 MB of it.
  '--disable-dev-shm-usage',
  '--disable-domain-reliability',
  '--disable-extensions',
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
  '--disable-field-trial-config',
  '--disable-hang-monitor',
  '--disable-popup-blocking',
  '--disable-prompt-on-repost',
  '--disable-search-engine-choice-screen',
  '--disable-smooth-scrolling',
  '--disable-sync',
  '--dns-prefetch-disable',
  '--export-tagged-pdf=false',
  '--font-render-hinting=none',
  '--force-color-profile=srgb',
  '--js-flags=--max-old-space-size=512',
  '--metrics-recording-only',
  '--no-default-browser-check',
  '--no-first-run',
  '--no-pings',
  '--no-service-autorun',
  '--password-store=basic',
  '--use-mock-keychain',
  // Every page has a proxy of its own. Requests of the browser itself reach nothing, and it looks
  // up no names.
  '--proxy-server=http://127.0.0.1:9',
  '--proxy-bypass-list=<-loopback>',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  // Without this, WebRTC would bypass the proxy.
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
];

/**
 * Starts Chromium and waits until it replies. It gets no variable of the service's environment,
 * because those contain secrets. It leads a process group of its own, so that a signal to the group
 * of the service does not reach it. Rejects with its output when it does not start within 30 s.
 */
export async function startChromium(options: ChromiumOptions): Promise<ChromiumProcess> {
  const { profile } = options;
  const args = [...ARGS, `--user-data-dir=${profile.path}`];
  args.push(options.webgl ? '--enable-unsafe-swiftshader' : '--use-gl=disabled');
  if (!options.sandbox) args.push('--no-sandbox');
  if (options.identity === 'visitor') {
    args.push('--disable-blink-features=AutomationControlled');
  }
  if (options.userAgent !== undefined) args.push(`--user-agent=${options.userAgent}`);
  const child = spawn(options.executablePath, args, {
    detached: true,
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: profile.path,
      TMPDIR: profile.path,
      LANG: 'en_US.UTF-8',
      ...(options.fontsFile === undefined ? {} : { FONTCONFIG_FILE: options.fontsFile }),
      ...libraryEnvironment(options.executablePath),
    },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
  });
  let printed = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    printed = (printed + chunk.toString('latin1')).slice(-LOG_BYTES);
  });
  const exited = untilExit(child);
  const cdp = createCdpConnection(child.stdio[3] as Writable, child.stdio[4] as Readable);

  async function close(withinMs: number): Promise<void> {
    if (withinMs > 0) {
      await cdp.send('Browser.close', undefined, { timeoutMs: withinMs }).catch(() => undefined);
      await Promise.race([exited, setTimeout(withinMs, undefined, { ref: false })]);
    }
    killGroup(child);
    await exited;
    await profile.remove();
  }

  let version = '';
  try {
    const started = cdp.send('Browser.getVersion', undefined, { timeoutMs: START_MS });
    const { product } = await Promise.race([started, spawnFailure(child)]);
    version = product.split('/')[1] ?? '';
  } catch (cause) {
    await close(0);
    throw new Error(`Chromium does not start: ${printed.trim()}`, { cause });
  }
  return { pid: child.pid ?? 0, cdp, version, touch: () => profile.touch(), close };
}

/** Resolves when the process has ended or could not be started. */
function untilExit(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
}

function spawnFailure(child: ChildProcess): Promise<never> {
  return new Promise((_, reject) => {
    child.once('error', reject);
  });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has ended already.
  }
}
