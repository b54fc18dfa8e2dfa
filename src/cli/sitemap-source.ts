import type { Session } from './command-context.ts';
import { printable } from './output.ts';
import { toTimestamps } from './timestamp-option.ts';
import type { SourceItem, UrlSource } from './url-source.ts';

/** The URLs of a sitemap, which the service reads; those that have changed since a time if it is given. */
export function urlsOfSitemap(
  { client, output, signal }: Session,
  url: string,
  since: string | undefined,
): UrlSource {
  const request = { url, ...toTimestamps({ since }) };

  async function* read(): AsyncGenerator<SourceItem> {
    let line = 0;
    for await (const { urls, failed } of client.pushes.readSitemap(request, { signal })) {
      if (failed !== undefined) {
        output.note(`${printable(failed.url)} cannot be read: ${failed.reason}`);
      }
      for (const each of urls) {
        line += 1;
        yield { line, values: { url: each.url } };
      }
    }
  }
  return { items: read(), share: () => undefined };
}
