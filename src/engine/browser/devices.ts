import type { HeaderPair } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import {
  MAX_PICTURE_PIXELS,
  requestedScreen,
  type Screen,
  screenPixels,
} from '../../domain/screens.ts';
import { USER_AGENTS } from '../http/user-agents.ts';

/** The window and the identity of a page. */
export interface Device {
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
  headers: readonly HeaderPair[] = [],
): Device {
  const given = new Map(headers);
  const screen = requestedScreen(parameters);
  const maxScale = Math.sqrt(MAX_PICTURE_PIXELS / (screen.width * screen.height));
  const drawn =
    screenPixels(screen) <= MAX_PICTURE_PIXELS ? screen : { ...screen, scale: maxScale };
  return {
    userAgent:
      given.get('user-agent') ??
      parameters.user_agent ??
      USER_AGENTS[parameters.device ?? 'desktop'],
    languages: given.get('accept-language') ?? 'en-US',
    screen: drawn,
  };
}
