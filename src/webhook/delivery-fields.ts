import type { CrawlStatus } from '../domain/job.ts';

/** A result whose fields are told. */
export interface FieldSource extends CrawlStatus {
  readonly rid: string;
  /** The URL as it was pushed. */
  readonly pushedUrl: string;
  readonly extras: Readonly<Record<string, string>>;
}

/** The fields that every delivery has, under the wire's names; the status goes under its older name too. */
export function resultFields(result: FieldSource) {
  return {
    cb_status: result.cbStatus,
    pc_status: result.cbStatus,
    original_status: result.originalStatus,
    rid: result.rid,
    url: result.url,
    pushed_url: result.pushedUrl,
  };
}

/**
 * The further fields that are told: `screenshot_url`, `screenshot_failed`, `failure` and `original_*`. The last come from the target's headers, so one that would
 * pass for a field of the delivery (a target's header named `status`), or whose name HTTP cannot carry, is left out.
 */
export function extraFields(result: FieldSource): Record<string, string> {
  const own = new Set(Object.keys(resultFields(result)));
  return Object.fromEntries(
    Object.entries(result.extras).filter(
      ([name]) =>
        /^(screenshot_url|screenshot_failed|failure|original_[\w.-]+)$/.test(name) &&
        !own.has(name.toLowerCase().replaceAll('-', '_')),
    ),
  );
}
