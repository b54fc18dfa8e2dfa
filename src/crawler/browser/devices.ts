import type { BrowserContextOptions } from 'playwright-core';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { USER_AGENTS } from '../http/user-agents.ts';

const SCREENS = {
  desktop: { viewport: { width: 1_366, height: 768 }, isMobile: false, deviceScaleFactor: 1 },
  tablet: { viewport: { width: 1_024, height: 1_366 }, isMobile: true, deviceScaleFactor: 2 },
  mobile: { viewport: { width: 412, height: 915 }, isMobile: true, deviceScaleFactor: 2.625 },
} as const;

/** The window and the identity of a page. */
export function deviceOptions(parameters: CrawlParameters): BrowserContextOptions {
  const { device = 'desktop', user_agent: userAgent, width, height } = parameters;
  const { viewport, isMobile, deviceScaleFactor } = SCREENS[device];
  return {
    userAgent: userAgent ?? USER_AGENTS[device],
    viewport: { width: width ?? viewport.width, height: height ?? viewport.height },
    isMobile,
    hasTouch: isMobile,
    deviceScaleFactor,
    locale: 'en-US',
  };
}
