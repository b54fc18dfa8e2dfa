import type { Steps } from '../../src/domain/in-turns.ts';
import { type PageBody, pageBody } from '../../src/engine/text/page-body.ts';

/** Takes all steps at once. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** A body of at most 10 MiB as it is delivered. */
export function shownBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  hostname?: string,
): PageBody & { readonly body: Uint8Array } {
  const page = atOnce(pageBody(bytes, contentType, { maxBytes: 10 * 1024 * 1024, hostname }));
  if (page.body === undefined) throw new Error('the body has become too large');
  return { ...page, body: page.body };
}
