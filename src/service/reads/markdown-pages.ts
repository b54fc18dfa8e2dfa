import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { TokenOwner } from '../../domain/account.ts';
import { gzipContentLength } from '../../domain/body-coding.ts';
import type { StoredResult } from '../../domain/result.ts';
import { isHtml, MAX_DOCUMENT_BYTES } from '../../engine/extract/format-page.ts';
import type { CrawlThreads } from '../../threads/crawl-threads.ts';

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** Makes Markdown of stored HTML pages. */
export interface MarkdownPages {
  /** Bytes that a conversion takes; 0 when the result is answered as it is. */
  bytes(result: StoredResult): number;
  /**
   * The result with its page as Markdown; as it is when it is no HTML, is a failure, or cannot be
   * read. Rejects only with the signal's reason.
   */
  convert(owner: TokenOwner, result: StoredResult, signal: AbortSignal): Promise<StoredResult>;
}

/** Makes them over the threads that read documents. */
export function createMarkdownPages({
  readDocument,
}: Pick<CrawlThreads, 'readDocument'>): MarkdownPages {
  function bytes({ contentType, details, body }: StoredResult): number {
    if (!isHtml(contentType) || details.failure !== undefined) return 0;
    const length = gzipContentLength(body);
    return length > MAX_DOCUMENT_BYTES ? 0 : length;
  }

  return {
    bytes,
    async convert(owner, result, signal) {
      if (bytes(result) === 0) return result;
      const { contentType, url } = result;
      // A body may be longer than it says: the target can have compressed it.
      const html = await unpack(result.body, { maxOutputLength: MAX_DOCUMENT_BYTES }).catch(
        () => undefined,
      );
      if (html === undefined) return result;
      const document = await readDocument(
        { body: html, contentType, isText: true, url },
        { parameters: { format: 'md' } },
        { accountId: owner.account.accountId },
        signal,
      );
      if (document === undefined || 'failed' in document) return result;
      const body = await pack(document.text);
      return { ...result, contentType: 'text/markdown; charset=utf-8', body };
    },
  };
}
