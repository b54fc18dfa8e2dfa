import type { Device } from './devices.ts';
import type { BrowserPage } from './running-browser.ts';

/** Makes a new page what its crawl asks for, before it goes anywhere. */
export async function setUpPage(page: BrowserPage, device: Device): Promise<void> {
  const { userAgent, languages, screen } = device;
  const { width, height, scale, isMobile } = screen;
  // All at once: the browser does them in order.
  await Promise.all([
    page.send('Page.enable'),
    page.send('Page.setLifecycleEventsEnabled', { enabled: true }),
    page.sendToBrowser('Browser.setDownloadBehavior', {
      behavior: 'deny',
      browserContextId: page.contextId,
    }),
    // What is not granted is refused, without asking.
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
    }),
    page.send('Emulation.setTouchEmulationEnabled', {
      enabled: isMobile,
      maxTouchPoints: isMobile ? 5 : 1,
    }),
    page.send('Emulation.setFocusEmulationEnabled', { enabled: true }),
    // Without hints of its own: those of the program would contradict the user agent.
    page.send('Emulation.setUserAgentOverride', { userAgent, acceptLanguage: languages }),
  ]);
}
