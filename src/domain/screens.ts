import type { CrawlParameters } from './parameters.ts';

/** The viewport of a page in CSS pixels; `scale` is device pixels for each of them. */
export interface Screen {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
  readonly isMobile: boolean;
}

/**
 * Most device pixels of one screenshot or viewport: 16 megapixels take about 300 MB of memory in
 * Chromium.
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
export function requestedScreen(parameters: CrawlParameters): Screen {
  const { device = 'desktop', width, height } = parameters;
  const screen = SCREENS[device];
  return { ...screen, width: width ?? screen.width, height: height ?? screen.height };
}

/** Device pixels of the whole viewport. */
export function screenPixels({ width, height, scale }: Screen): number {
  return Math.round(width * scale) * Math.round(height * scale);
}
