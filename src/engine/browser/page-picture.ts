import type { CrawlParameters } from '../../domain/parameters.ts';
import { MAX_PICTURE_PIXELS, MAX_PICTURE_SIDE } from '../../domain/screens.ts';
import type { Device } from './devices.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * The part of a page that is drawn, from its upper left corner. Sizes are in CSS pixels; `scale` is
 * device pixels for each of them.
 */
export interface PictureArea {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
}

const MAX_PICTURE_BYTES = 12 * 1024 * 1024;

/**
 * How a page is drawn in one picture. It has the scale of its screen if that fits, otherwise a
 * lower scale, down to 1, so that its whole length fits. What does not fit then is cut off at the
 * bottom. Only a page that is wider than the widest picture is drawn at a scale below 1.
 */
export function pictureArea(width: number, height: number, screenScale: number): PictureArea {
  const fits = Math.min(
    MAX_PICTURE_SIDE / width,
    MAX_PICTURE_SIDE / height,
    Math.sqrt(MAX_PICTURE_PIXELS / (width * height)),
  );
  const scale = Math.min(screenScale, Math.max(fits, 1), MAX_PICTURE_SIDE / width);
  const longest = Math.min(MAX_PICTURE_SIDE / scale, MAX_PICTURE_PIXELS / (width * scale * scale));
  return { width, height: Math.max(Math.min(height, Math.floor(longest + 1e-6)), 1), scale };
}

/**
 * A JPEG of the page: of its window with mode `viewport`, else of its whole length. Rejects when it
 * cannot be taken.
 */
export async function takeScreenshot(
  page: BrowserPage,
  parameters: CrawlParameters,
  device: Device,
  timeoutMs: number,
): Promise<Uint8Array> {
  const area = parameters.mode === 'viewport' ? undefined : await wholePage(page, device);
  const picture = await capture(page, area, 80, timeoutMs, device);
  // A picture of noise hardly compresses, and a screenshot must fit into one record of a database.
  return picture.length <= MAX_PICTURE_BYTES ? picture : capture(page, area, 20, timeoutMs, device);
}

async function wholePage(page: BrowserPage, { screen }: Device): Promise<PictureArea> {
  const { cssContentSize: size, cssLayoutViewport: view } =
    await page.send('Page.getLayoutMetrics');
  const width = Math.max(Math.ceil(size.width), view.clientWidth, 1);
  const height = Math.max(Math.ceil(size.height), view.clientHeight, 1);
  return pictureArea(width, height, screen.scale);
}

async function capture(
  page: BrowserPage,
  area: PictureArea | undefined,
  quality: number,
  timeoutMs: number,
  { screen }: Device,
): Promise<Uint8Array> {
  const { data } = await page.send(
    'Page.captureScreenshot',
    {
      format: 'jpeg',
      quality,
      ...(area === undefined
        ? {}
        : {
            captureBeyondViewport: true,
            clip: { x: 0, y: 0, ...area, scale: area.scale / screen.scale },
          }),
    },
    timeoutMs,
  );
  return Buffer.from(data, 'base64');
}
