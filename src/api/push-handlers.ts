import type { Message, MessageInitShape } from '@bufbuild/protobuf';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type PushAgainRequest,
  type PushItem,
  type PushResultSchema,
  PushService,
  type PushStreamRequest,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { TokenOwner } from '../domain/account.ts';
import { ignoredParameters } from '../domain/parameters.ts';
import { CB_STATUS } from '../domain/status.ts';
import type { TokenWatch, WatchedToken } from '../service/accounts/token-watch.ts';
import type { AgainSelection, PushAgain } from '../service/batches/push-again.ts';
import type { InlineCrawls, InlineResult } from '../service/crawls/inline-crawl.ts';
import type { ReadSitemap, SitemapUrl } from '../service/crawls/read-sitemap.ts';
import type { CrawlInput } from '../service/queue/crawl-request.ts';
import type { PushedItem, Pushing } from '../service/queue/push.ts';
import type { PushInput } from '../service/queue/push-input.ts';
import { callerOf } from './caller-of.ts';
import { toParameters } from './crawl-parameters.ts';
import { type Call, type Method, toMethods } from './method.ts';
import { fromPageToken, toPageToken } from './page-token.ts';
import { toDate, toRange } from './to-date.ts';
import { refusalOf } from './unreadable.ts';
import { whileAuthenticated } from './while-authenticated.ts';

/** What the push service works with. */
export interface PushHandlerDeps {
  readonly tokenWatch: TokenWatch;
  readonly pushing: Pushing;
  readonly pushAgain: PushAgain;
  readonly readSitemap: ReadSitemap;
  readonly inlineCrawls: InlineCrawls;
  /** Base of the URLs in replies, without a slash at its end. */
  readonly publicUrl: () => string;
}

/** The methods of the push service. */
export function pushHandlers(deps: PushHandlerDeps): Method[] {
  const { tokenWatch, pushing, pushAgain, readSitemap, inlineCrawls } = deps;

  async function* pushStream(requests: AsyncIterable<PushStreamRequest>, call: Call) {
    let crawler = '';
    let last: { readonly token: string; readonly watched: WatchedToken } | undefined;
    try {
      for await (const request of requests) {
        crawler = request.crawler === '' ? crawler : request.crawler;
        const { token = '' } = call.caller ?? {};
        if (last?.token !== token) {
          last?.watched[Symbol.dispose]();
          last = { token, watched: tokenWatch.watch(token, callerOf(call)) };
        }
        // The token may have been replaced since it was checked for an earlier message.
        last.watched.signal.throwIfAborted();
        const { owner } = last.watched;
        const items = request.items.map(toPushInput);
        const results = await pushing.pushBatch(owner, crawler, items, '', call.traceparent);
        yield { results: resultMessages(results, request, owner), sequence: request.sequence };
      }
    } finally {
      last?.watched[Symbol.dispose]();
    }
  }

  return toMethods(PushService, {
    async push(request, call) {
      const owner = callerOf(call);
      const input = toPushInput(request);
      return {
        ...(await pushing.push(owner, request.crawler, input, call.traceparent)),
        ignoredParameters: ignoredParameters(input.parameters, owner.tokenType),
      };
    },
    async pushBatch(request, call) {
      const owner = callerOf(call);
      const items = request.items.map(toPushInput);
      const results = await pushing.pushBatch(
        owner,
        request.crawler,
        items,
        request.requestId,
        call.traceparent,
      );
      return { results: resultMessages(results, request, owner) };
    },
    pushStream,
    async *readSitemap(request, call) {
      const owner = callerOf(call);
      // A sitemap is held as a whole while it is read.
      await call.room.take(SITEMAP_BYTES);
      const { url } = request;
      const since = toDate('since', request.since);
      const open = (signal: AbortSignal) => readSitemap(owner, { url, since }, signal);
      for await (const part of whileAuthenticated(tokenWatch, call, open)) {
        yield 'failed' in part ? part : { urls: part.urls.map(toSitemapUrl) };
      }
    },
    async *pushAgain(request, call) {
      const owner = callerOf(call);
      const selection = toAgainSelection(request);
      const open = (signal: AbortSignal) => pushAgain(owner, request.crawler, selection, signal);
      for await (const part of whileAuthenticated(tokenWatch, call, open)) {
        const results = part.items.map(({ of, pushed }) => ({
          againOf: of,
          ...resultMessage(pushed),
        }));
        yield { results, nextPageToken: toPageToken(part.cursor) };
      }
    },
    async crawl(request, call) {
      const owner = callerOf(call);
      const input = toCrawlInput(request);
      const ignored = ignoredParameters(input.parameters, owner.tokenType);
      if (request.async === true) {
        const rid = await inlineCrawls.crawlLater(owner, input, call.traceparent);
        const { url } = request;
        const status = CB_STATUS.accepted;
        const accepted = { cbStatus: status, pcStatus: status, url, pushedUrl: url, rid };
        return { ...accepted, ignoredParameters: ignored };
      }
      const result = await inlineCrawls.crawl(
        owner,
        input,
        request.store === true,
        call.signal,
        call.traceparent,
      );
      const response = crawlResponse(result, request, deps.publicUrl());
      return { ...response, ignoredParameters: ignored };
    },
  });
}

/** The longest sitemap, as it arrives. */
const SITEMAP_BYTES = 10 * 1024 * 1024;

function toSitemapUrl({ url, lastmod }: SitemapUrl) {
  return { url, lastmod: lastmod && timestampFromDate(lastmod) };
}

function toAgainSelection(request: PushAgainRequest): AgainSelection {
  const { batch, reason, originalStatus, rids, intoBatch, pageToken } = request;
  const cursor = fromPageToken(pageToken);
  return { batch, reason, originalStatus, rids, intoBatch, cursor, ...toRange(request) };
}

function crawlResponse(
  result: InlineResult,
  { token, url: pushedUrl }: { readonly token: string; readonly url: string },
  base: string,
) {
  const { rid, storedAt } = result;
  return {
    cbStatus: result.cbStatus,
    pcStatus: result.cbStatus,
    originalStatus: result.originalStatus,
    url: result.url,
    pushedUrl,
    body: result.body,
    contentType: result.contentType,
    ...(rid === undefined ? {} : { rid, storageUrl: storageUrl(base, token, rid) }),
    ...(storedAt === undefined ? {} : { storedAt: timestampFromDate(storedAt) }),
    ...result.details,
  };
}

/** As the client called, so as it can read: with its token when the call carried one. */
function storageUrl(base: string, token: string, rid: string): string {
  const query = new URLSearchParams(token === '' ? { rid } : { token, rid });
  return `${base}/storage?${query.toString()}`;
}

type Crawlable = Pick<PushItem, 'url' | 'method' | 'body' | 'postContentType' | 'parameters'>;

function toCrawlInput(request: Crawlable): CrawlInput {
  const { url, method, body, postContentType } = request;
  return { url, method, body, postContentType, parameters: toParameters(request.parameters) };
}

function toPushInput(item: Omit<PushItem, keyof Message>): PushInput {
  return {
    ...toCrawlInput(item),
    refusal: refusalOf(item),
    callbackHeaders: item.callbackHeaders,
    queueTimeout: item.queueTimeout,
    metadata: item.metadata,
    notBefore: item.notBefore && timestampDate(item.notBefore),
    delay: item.delay,
    priority: item.priority,
    unique: item.unique,
    uniqueKey: item.uniqueKey,
    uniqueFor: item.uniqueFor,
    batch: item.batch,
  };
}

function resultMessages(
  results: readonly PushedItem[],
  { items }: { readonly items: readonly Crawlable[] },
  { tokenType }: TokenOwner,
): MessageInitShape<typeof PushResultSchema>[] {
  return results.map((result, at) => {
    const parameters = items[at]?.parameters;
    if (parameters === undefined) return resultMessage(result);
    const ignored = ignoredParameters(toParameters(parameters), tokenType);
    return { ...resultMessage(result), ignoredParameters: ignored };
  });
}

function resultMessage(item: PushedItem) {
  if ('rid' in item) return item;
  const { reason: code, message, field = '', retryAfterMs = 0 } = item.error;
  return { error: { code, message, field, retryAfterMs } };
}
