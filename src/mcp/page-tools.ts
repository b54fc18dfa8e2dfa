import { setTimeout as sleep } from 'node:timers/promises';
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import {
  CrawlOutcome,
  FindRidResponseSchema,
  ResultSummarySchema,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  StorageFormat,
  type StoredResult,
  StoredResultSchema,
} from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { type CrawlerClient, describeFailure, unpackResult } from '../client/client.ts';
import { toPlain } from '../client/message-json.ts';
import { type PagePart, pagePart, pageReply } from './page-text.ts';
import { answering, errorReply, READS, reply } from './tool-reply.ts';

/** Between two looks for a result. */
const POLL_MS = 500;
/** Pages of the list that one search reads. */
const MAX_SEARCH_PAGES = 20;

const rid = z
  .string()
  .regex(/^[0-9a-f]{24}$/)
  .describe('The rid that a push returned: 24 hexadecimal digits.');

/** Adds the tools that find and read results. */
export function addPageTools(server: McpServer, client: CrawlerClient): void {
  server.registerTool(
    'read_page',
    {
      title: 'Read a page',
      description:
        'Reads a stored result: its statuses, and its page as Markdown, in parts. Give the rid, or the URL as it was pushed for the newest result of it.',
      inputSchema: z.object({
        rid: rid.optional(),
        url: z.string().max(8_192).optional().describe('The URL as it was pushed.'),
        ...pagePart,
      }),
      annotations: READS,
    },
    ({ rid: wanted = '', url = '', ...part }, { mcpReq: { signal } }) =>
      answering(async () => {
        if ((wanted === '') === (url === '')) return errorReply('Give either rid or url.');
        const request = { rid: wanted, url, format: StorageFormat.MD };
        const { result } = await client.storage.getResult(request, { signal });
        return result === undefined ? errorReply('There is no result.') : page(result, part);
      }),
  );

  server.registerTool(
    'wait_for_result',
    {
      title: 'Wait for a result',
      description:
        'Waits until the result of a rid is stored, and reads it as read_page does. If the time passes first, says where the job is. Results of webhook crawlers are delivered instead; then says how.',
      inputSchema: z.object({
        rid,
        timeout_seconds: z.number().int().min(0).max(60).default(30),
        ...pagePart,
      }),
      annotations: READS,
    },
    ({ rid: wanted, timeout_seconds: seconds, ...part }, { mcpReq: { signal } }) =>
      answering(async () => {
        const until = performance.now() + seconds * 1_000;
        for (;;) {
          const result = await storedResult(client, wanted, signal);
          if (result !== undefined) return page(result, part);
          const found = await client.activity.findRid({ rid: wanted }, { signal });
          // It may have been stored between the two looks.
          const isOver = found.job === undefined && found.result === undefined;
          if (isOver || performance.now() >= until) {
            const facts = toPlain(FindRidResponseSchema, found);
            return reply({ ...facts, note: 'There is no stored result yet.' });
          }
          await sleep(POLL_MS, undefined, { signal });
        }
      }),
  );

  server.registerTool(
    'search_results',
    {
      title: 'Search results',
      description:
        'Lists stored results, newest first, without their pages: of one crawler or all, by outcome, and by a part of the URL.',
      inputSchema: z.object({
        crawler: z.string().max(128).default('').describe('Its name; all crawlers when empty.'),
        outcome: z.enum(['any', 'completed', 'failed']).default('any'),
        url_contains: z
          .string()
          .max(200)
          .default('')
          .describe('Text in the pushed or final URL, upper and lower case alike.'),
        limit: z.number().int().min(1).max(100).default(20),
        cursor: z.string().max(500).default('').describe('next_cursor of the reply before.'),
      }),
      annotations: READS,
    },
    (input, { mcpReq: { signal } }) =>
      answering(async () => {
        const needle = input.url_contains.toLowerCase();
        const results: Record<string, unknown>[] = [];
        let pageToken = input.cursor;
        let examined = 0;
        // With a filter further pages of the list are read; without one the first is the answer.
        for (let pages = 0; pages < MAX_SEARCH_PAGES; pages += 1) {
          const list = await client.activity.listResults(
            {
              name: input.crawler,
              outcome: outcomes[input.outcome],
              pageSize: input.limit,
              pageToken,
            },
            { signal },
          );
          examined += list.results.length;
          for (const result of list.results) {
            const urls = `${result.pushedUrl}\n${result.url}`.toLowerCase();
            if (urls.includes(needle)) results.push(toPlain(ResultSummarySchema, result));
          }
          pageToken = list.nextPageToken;
          if (pageToken === '' || needle === '' || results.length >= input.limit) break;
        }
        const next = pageToken === '' ? {} : { next_cursor: pageToken };
        return reply({ results, examined, ...next });
      }),
  );
}

const outcomes = {
  any: CrawlOutcome.UNSPECIFIED,
  completed: CrawlOutcome.COMPLETED,
  failed: CrawlOutcome.FAILED,
} as const;

async function storedResult(
  client: CrawlerClient,
  rid: string,
  signal: AbortSignal,
): Promise<StoredResult | undefined> {
  try {
    return (await client.storage.getResult({ rid, format: StorageFormat.MD }, { signal })).result;
  } catch (error) {
    if (describeFailure(error).code === 'not_found') return undefined;
    throw error;
  }
}

async function page(result: StoredResult, part: PagePart): Promise<CallToolResult> {
  const { body } = await unpackResult(result);
  const { body: _packed, ...facts } = toPlain(StoredResultSchema, result);
  return pageReply(facts, body, part);
}
