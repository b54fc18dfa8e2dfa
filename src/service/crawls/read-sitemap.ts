import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import type { TokenOwner } from '../../domain/account.ts';
import { DomainError } from '../../domain/errors.ts';
import { createStreamPlaces } from '../stream-places.ts';
import type { InlineCrawls, InlineResult } from './inline-crawl.ts';
import { createSitemapParser, type SitemapEntry } from './sitemap-parser.ts';

/** A URL of a sitemap. */
export type SitemapUrl = Pick<SitemapEntry, 'url' | 'lastmod'>;

/** A part of what a sitemap has, or a sitemap of an index that could not be read. */
export type SitemapPart =
  | { readonly urls: readonly SitemapUrl[] }
  | { readonly failed: { readonly url: string; readonly reason: string } };

/**
 * Requests a sitemap as an inline crawl of the Normal token does, and yields its URLs a thousand at a
 * time. Of an index it yields those of its sitemaps, up to three levels. Leaves out what has not changed since
 * `since`. Throws `failed_precondition` when the sitemap itself cannot be read.
 */
export type ReadSitemap = (
  owner: TokenOwner,
  request: { readonly url: string; readonly since: Date | undefined },
  signal: AbortSignal,
) => AsyncGenerator<SitemapPart, void, undefined>;

const MAX_DEPTH = 3;
/** Sitemaps of one index that are read; as many as an index may name. */
const MAX_SITEMAPS = 50_000;
/** Characters of their URLs: 50,000 of usual length. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Bytes of one sitemap after decompression: the 50 MB of the protocol, and some more. */
const MAX_BYTES = 64 * 1024 * 1024;
/** A sitemap has more than {@link MAX_BYTES}. */
class TooLong extends Error {}
const PART = 1_000;
/** Bytes that are parsed in one go: about a millisecond. */
const PIECE_BYTES = 64 * 1024;
const LIMITS = { what: 'streams of sitemaps', perAccount: 2, all: 20 };

/** Makes the use case. */
export function createReadSitemap({ crawl }: Pick<InlineCrawls, 'crawl'>): ReadSitemap {
  const enter = createStreamPlaces(LIMITS);

  async function* read(owner: TokenOwner, url: string, signal: AbortSignal) {
    const plain = { ...owner, tokenType: 'normal' } as const;
    const page = await crawl(plain, { url, parameters: {} }, false, signal);
    const { failure } = page.details;
    if (failure !== undefined) throw unreadable(url, failure);
    if (page.originalStatus >= 400) throw unreadable(url, `status_${page.originalStatus}`);
    try {
      yield* entriesOf(page);
    } catch (error) {
      if (error instanceof DomainError) throw error;
      throw unreadable(url, error instanceof TooLong ? 'sitemap_too_long' : 'not_a_sitemap');
    }
  }

  return async function* readSitemap(owner, { url, since }, signal) {
    using _place = enter(owner.account.accountId);
    const seen = new Set([url]);
    const waiting = [{ url, depth: 1 }];
    let characters = 0;
    const isBeyond = (sitemap: string): boolean =>
      seen.size >= MAX_SITEMAPS || characters + sitemap.length > MAX_CHARACTERS;
    const isOld = ({ lastmod }: SitemapEntry): boolean =>
      since !== undefined && lastmod !== undefined && lastmod < since;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      let urls: SitemapUrl[] = [];
      /** Why sitemaps of this index are left out. */
      let leftOut: string | undefined;
      try {
        for await (const entry of read(owner, next.url, signal)) {
          if (isOld(entry)) continue;
          if (!entry.isSitemap) urls.push({ url: entry.url, lastmod: entry.lastmod });
          else if (seen.has(entry.url)) continue;
          else if (next.depth === MAX_DEPTH) leftOut = 'nested_too_deep';
          else if (isBeyond(entry.url)) leftOut = 'too_many_sitemaps';
          else {
            seen.add(entry.url);
            characters += entry.url.length;
            waiting.push({ url: entry.url, depth: next.depth + 1 });
          }
          if (urls.length < PART) continue;
          yield { urls };
          urls = [];
        }
      } catch (error) {
        if (!(error instanceof DomainError) || error.reason !== 'sitemap_unreadable') throw error;
        if (next.url === url) throw error;
        yield { failed: { url: next.url, reason: String(error.metadata?.['reason'] ?? '') } };
      }
      if (urls.length > 0) yield { urls };
      if (leftOut !== undefined) yield { failed: { url: next.url, reason: leftOut } };
    }
  };
}

function unreadable(url: string, reason: string): DomainError {
  const message = `The sitemap ${url} cannot be read: ${reason}.`;
  const options = { field: 'url', metadata: { reason } };
  return new DomainError('failed_precondition', 'sitemap_unreadable', message, options);
}

async function* entriesOf({ body }: InlineResult): AsyncGenerator<SitemapEntry> {
  const decoder = new TextDecoder();
  let parser: ReturnType<typeof createSitemapParser> | undefined;
  for await (const piece of pieces(body)) {
    const text = decoder.decode(piece, { stream: true });
    parser ??= createSitemapParser(text.trimStart().startsWith('<'));
    yield* parser.write(text);
    await nextTurn();
  }
  yield* parser?.end() ?? [];
}

/** The bytes, decompressed if they are gzip. */
async function* pieces(body: Uint8Array): AsyncGenerator<Uint8Array> {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b;
  if (!isGzip) {
    for (let at = 0; at < body.byteLength; at += PIECE_BYTES) {
      yield body.subarray(at, at + PIECE_BYTES);
    }
    return;
  }
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  gunzip.end(body);
  let bytes = 0;
  for await (const piece of gunzip as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength;
    if (bytes > MAX_BYTES) throw new TooLong();
    yield piece;
  }
}
