import type { HeaderPair } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { MAX_PICTURE_PIXELS, pixelsOf, type Screen, screenOf } from '../../domain/screens.ts';
import { USER_AGENTS } from '../http/user-agents.ts';

/** The window and the identity of a page. */
export interface Device {
  readonly userAgent: string;
  /** `Accept-Language`, and what scripts are told. */
  readonly languages: string;
  /** The screen asked for, of fewer pixels where all would be more than are drawn. */
  readonly screen: Screen;
}

/** What the parameters ask for, and the headers among them that are the browser's own. */
export function deviceOf(parameters: CrawlParameters, headers: readonly HeaderPair[] = []): Device {
  const given = new Map(headers);
  const screen = screenOf(parameters);
  const most = Math.sqrt(MAX_PICTURE_PIXELS / (screen.width * screen.height));
  const drawn = pixelsOf(screen) <= MAX_PICTURE_PIXELS ? screen : { ...screen, scale: most };
  return {
    userAgent:
      given.get('user-agent') ??
      parameters.user_agent ??
      USER_AGENTS[parameters.device ?? 'desktop'],
    languages: given.get('accept-language') ?? 'en-US',
    screen: drawn,
  };
}
