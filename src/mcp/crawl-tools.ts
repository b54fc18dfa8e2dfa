import { randomUUID } from 'node:crypto';
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { Format } from '../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import {
  CrawlResponseSchema,
  type PushResult,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { CrawlerClient } from '../client/client.ts';
import { toPlain } from '../client/message-json.ts';
import { pagePart, pageReply } from './page-text.ts';
import { answering, reply } from './tool-reply.ts';

/** URLs of one call. */
const MAX_URLS = 100;
/** The service's own limit, and some time to wait for a browser. */
const CRAWL_TIMEOUT_MS = 200_000;

const CRAWLS = { readOnlyHint: false, destructiveHint: false, openWorldHint: true } as const;

const url = z.string().min(1).max(8_192);
const readability = z
  .boolean()
  .default(false)
  .describe('Only the main content of a page, without menus and the like.');

/** Adds the tools that cause crawls. */
export function addCrawlTools(server: McpServer, client: CrawlerClient): void {
  server.registerTool(
    'push_urls',
    {
      title: 'Push URLs',
      description:
        'Puts URLs into the queue of a crawler. Returns a rid for each, or why it was refused; one with retry_after_ms can be pushed again after that time. wait_for_result reads what comes of a rid.',
      inputSchema: z.object({
        crawler: z.string().min(1).max(128).describe('The name of an existing crawler.'),
        urls: z.array(url).min(1).max(MAX_URLS),
        main_content_only: readability,
      }),
      annotations: CRAWLS,
    },
    ({ crawler, urls, main_content_only: mdReadability }, { mcpReq: { signal } }) =>
      answering(async () => {
        const parameters = { format: Format.MD, mdReadability };
        const items = urls.map((each) => ({ url: each, parameters }));
        // With it a repetition of the call queues nothing twice.
        const request = { crawler, items, requestId: randomUUID() };
        const { results } = await client.pushes.pushBatch(request, { signal });
        return reply({
          pushed: results.map((result, index) => ({ url: urls[index], ...toOutcome(result) })),
        });
      }),
  );

  server.registerTool(
    'crawl_now',
    {
      title: 'Crawl now',
      description:
        'Crawls one URL at once, without a queue, and reads its page as Markdown. The result is stored, too: read_page reads further parts by its rid.',
      inputSchema: z.object({
        url,
        main_content_only: readability,
        max_characters: pagePart.max_characters,
      }),
      annotations: CRAWLS,
    },
    ({ url: target, main_content_only: mdReadability, ...part }, { mcpReq: { signal } }) =>
      answering(async () => {
        const parameters = { format: Format.MD, mdReadability };
        const response = await client.pushes.crawl(
          { url: target, store: true, parameters },
          { signal, timeoutMs: CRAWL_TIMEOUT_MS },
        );
        const { body: _body, ...facts } = toPlain(CrawlResponseSchema, response);
        return pageReply(facts, response.body, part);
      }),
  );
}

/** What became of a URL, as an agent reads it. */
function toOutcome({ rid, duplicate, ignoredParameters, error }: PushResult): object {
  if (error !== undefined) {
    const { message, code, retryAfterMs } = error;
    const again = retryAfterMs === 0 ? {} : { retry_after_ms: retryAfterMs };
    return { refused: message, reason: code, ...again };
  }
  return {
    rid,
    ...(duplicate ? { duplicate } : {}),
    ...(ignoredParameters.length === 0 ? {} : { ignored_parameters: ignoredParameters }),
  };
}
