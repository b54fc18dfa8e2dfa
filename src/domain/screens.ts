import type { CrawlParameters } from './parameters.ts';

/** A window onto a page, in CSS pixels, and how many pixels of a screen one of them takes. */
export interface Screen {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
  readonly isMobile: boolean;
}

/**
 * Most pixels of one picture, and of a window that is drawn: 16 Mpixel take about 300 MB of memory
 * in Chromium.
 */
export const MAX_PICTURE_PIXELS = 16 * 1024 * 1024;
/** Longest side of a picture that Chromium draws. */
export const MAX_PICTURE_SIDE = 16_384;

const SCREENS = {
  desktop: { width: 1_366, height: 768, scale: 1, isMobile: false },
  tablet: { width: 1_024, height: 1_366, scale: 2, isMobile: true },
  mobile: { width: 412, height: 915, scale: 2.625, isMobile: true },
} as const satisfies Record<string, Screen>;

/** The screen that `device`, `width` and `height` ask for. */
export function screenOf(parameters: CrawlParameters): Screen {
  const { device = 'desktop', width, height } = parameters;
  const screen = SCREENS[device];
  return { ...screen, width: width ?? screen.width, height: height ?? screen.height };
}

/** Pixels of a picture of the whole window. */
export function pixelsOf({ width, height, scale }: Screen): number {
  return Math.round(width * scale) * Math.round(height * scale);
}
