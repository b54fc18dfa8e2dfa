import type { CdpConnection } from './cdp-connection.ts';
import { evaluateOnEmptyPage } from './empty-page.ts';

/**
 * Two letters of each script. Without a font for it both are drawn as the same box, or not at all.
 */
const SAMPLES = {
  Chinese: '书学',
  Japanese: 'あむ',
  Korean: '가책',
  Arabic: 'حم',
  Hebrew: 'אש',
  Hindi: 'कस',
  Thai: 'กษ',
  emoji: '😀🚗',
} as const;

/** A script of which pictures of pages show the letters only with a font for it. */
export type Script = keyof typeof SAMPLES;

const DRAW = `Object.entries(${JSON.stringify(SAMPLES)})
  .filter(([, letters]) => {
    const [one, other] = Array.from(letters, (letter) => {
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = 64;
      const context = canvas.getContext('2d');
      context.font = '32px sans-serif';
      context.fillText(letter, 8, 44);
      return canvas.toDataURL();
    });
    return one === other;
  })
  .map(([script]) => script)`;

/** The scripts that a browser has no font for, found by drawing them on an empty page. */
export async function findMissingFonts(cdp: CdpConnection): Promise<Script[]> {
  const missing = await evaluateOnEmptyPage(cdp, DRAW);
  if (!Array.isArray(missing)) throw new Error('Chromium does not draw letters.');
  return missing;
}
