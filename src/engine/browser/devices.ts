import type { HeaderPair } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import {
  MAX_PICTURE_PIXELS,
  requestedScreen,
  type Screen,
  screenPixels,
} from '../../domain/screens.ts';
import { type CrawlerIdentity, userAgents } from '../http/user-agents.ts';
import { type UserAgentHints, userAgentHints } from './user-agent-hints.ts';
import { languagesOf, type VisitorPlace, visitorPlace } from './visitor-place.ts';

/** The window and the identity of a page. */
export interface Device extends UserAgentHints, VisitorPlace {
  readonly userAgent: string;
  /** The value of `Accept-Language` and of `navigator.languages`. */
  readonly languages: string;
  /** The requested screen, with a lower scale where it would have more pixels than can be drawn. */
  readonly screen: Screen;
}

/**
 * The device that the parameters ask for. A user agent and languages among `headers` replace its
 * own.
 */
export function createDevice(
  parameters: CrawlParameters,
  /** The browser that is to be the device; its version is as in `153.0.7899.0`. */
  browser: { readonly identity: CrawlerIdentity; readonly version: string },
  headers: readonly HeaderPair[] = [],
): Device {
  const given = new Map(headers);
  const screen = requestedScreen(parameters);
  const maxScale = Math.sqrt(MAX_PICTURE_PIXELS / (screen.width * screen.height));
  const drawn =
    screenPixels(screen) <= MAX_PICTURE_PIXELS ? screen : { ...screen, scale: maxScale };
  const [major = ''] = browser.version.split('.');
  const userAgent =
    given.get('user-agent') ??
    parameters.user_agent ??
    userAgents(browser.identity, major)[parameters.device ?? 'desktop'];
  const place = visitorPlace(parameters);
  return {
    userAgent,
    ...userAgentHints(userAgent, browser.version),
    ...place,
    languages: given.get('accept-language') ?? languagesOf(place.locale ?? 'en-US'),
    screen: drawn,
  };
}
