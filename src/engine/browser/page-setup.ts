import { defined } from '../../domain/defined.ts';
import type { SendToTarget } from './attached-targets.ts';
import { CdpError, type CdpParams } from './cdp-connection.ts';
import type { Device } from './devices.ts';
import type { BrowserPage } from './running-browser.ts';
import { workerIdentityScript } from './worker-identity.ts';

/** Sets a new page up as its crawl asks, before it is navigated. */
export async function setUpPage(page: BrowserPage, device: Device): Promise<void> {
  const { locale, timezone, screen } = device;
  const { width, height, scale, isMobile } = screen;
  // All commands at once; the browser runs them in order.
  await Promise.all([
    page.send('Page.enable'),
    page.send('Page.setLifecycleEventsEnabled', { enabled: true }),
    page.sendToBrowser('Browser.setDownloadBehavior', {
      behavior: 'deny',
      browserContextId: page.contextId,
    }),
    // Permissions that are not granted are refused without a question.
    page.sendToBrowser('Browser.grantPermissions', {
      permissions: [],
      browserContextId: page.contextId,
    }),
    page.send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: scale,
      mobile: isMobile,
      screenWidth: width,
      screenHeight: height,
      screenOrientation:
        height > width
          ? { type: 'portraitPrimary', angle: 0 }
          : { type: 'landscapePrimary', angle: 0 },
    }),
    // The window of a phone follows its screen.
    isMobile ? undefined : resizeWindow(page, width, height),
    page.send('Emulation.setTouchEmulationEnabled', {
      enabled: isMobile,
      maxTouchPoints: isMobile ? 5 : 1,
    }),
    page.send('Emulation.setFocusEmulationEnabled', { enabled: true }),
    page.send('Emulation.setUserAgentOverride', userAgentOf(device)),
    locale === undefined
      ? undefined
      : page.send('Emulation.setLocaleOverride', { locale }).catch(ignoreShared),
    timezone === undefined
      ? undefined
      : page.send('Emulation.setTimezoneOverride', { timezoneId: timezone }).catch(ignoreShared),
  ]);
}

/** Shared and service workers would otherwise have the browser's own. */
const NO_HINTS = {
  brands: [],
  fullVersionList: [],
  platform: '',
  platformVersion: '',
  architecture: '',
  model: '',
  mobile: false,
} satisfies Device['metadata'];

/** Gives a worker, or a frame in a process of its own, the identity of its page. */
export function setUpOther(type: string, send: SendToTarget, device: Device): void {
  const { locale, timezone } = device;
  send('Emulation.setUserAgentOverride', { userAgentMetadata: NO_HINTS, ...userAgentOf(device) });
  if (locale !== undefined) send('Emulation.setLocaleOverride', { locale });
  if (timezone !== undefined) send('Emulation.setTimezoneOverride', { timezoneId: timezone });
  if (type === 'iframe') return;
  send('Runtime.evaluate', { expression: workerIdentityScript(device) });
}

function userAgentOf(device: Device): CdpParams<'Emulation.setUserAgentOverride'> {
  const { userAgent, languages, platform, metadata } = device;
  // Without metadata no client hints are sent: the browser's own would contradict the user agent.
  const hints = defined({ userAgentMetadata: metadata });
  return { userAgent, acceptLanguage: languages, platform, ...hints };
}

async function resizeWindow(page: BrowserPage, width: number, height: number): Promise<void> {
  const { windowId } = await page.send('Browser.getWindowForTarget');
  await page.send('Browser.setWindowBounds', { windowId, bounds: { width, height } });
}

/** Pages that share a process, when there are very many, share these; the first decides. */
function ignoreShared(error: unknown): void {
  if (!(error instanceof CdpError) || error.kind !== 'refused') throw error;
}
