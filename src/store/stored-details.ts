import { defined } from '../domain/defined.ts';
import type { ResultDetails } from '../domain/result.ts';

const HEADER_PREFIX = 'original_';

/** Details as the stores keep them. */
export function detailsText(details: ResultDetails): string {
  return JSON.stringify(details);
}

/**
 * Reads them. Databases of earlier versions hold a flat object under the names of the wire:
 * `failure`, `screenshot_url`, `screenshot_failed` and `original_<name>`.
 */
export function parseDetails(text: string): ResultDetails {
  const kept = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const isFlat = Object.keys(kept).some(
    (name) => name.startsWith(HEADER_PREFIX) || name.startsWith('screenshot_'),
  );
  return isFlat ? flatDetails(kept as Readonly<Record<string, string>>) : kept;
}

function flatDetails(kept: Readonly<Record<string, string>>): ResultDetails {
  const headers = Object.entries(kept).flatMap(([name, value]) =>
    name.startsWith(HEADER_PREFIX) ? [[name.slice(HEADER_PREFIX.length), value] as const] : [],
  );
  return defined({
    failure: kept['failure'],
    screenshotUrl: kept['screenshot_url'],
    screenshotFailed: kept['screenshot_failed'],
    originalHeaders: headers.length > 0 ? Object.fromEntries(headers) : undefined,
  });
}
