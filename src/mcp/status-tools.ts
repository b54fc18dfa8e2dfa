import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import {
  FindRidResponseSchema,
  ListFailuresResponseSchema,
} from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { GetStatsResponseSchema } from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import type { CrawlerClient } from '../client/client.ts';
import { toPlain } from '../client/message-json.ts';
import { answering, errorReply, READS, reply } from './tool-reply.ts';

/** Crawlers and days in one reply. */
const MAX_ROWS = 50;

const day = z
  .string()
  .regex(/^\d{4}-\d\d-\d\d$/)
  .optional();

/** Adds the tools that say how crawlers are doing. */
export function addStatusTools(server: McpServer, client: CrawlerClient): void {
  server.registerTool(
    'stats',
    {
      title: 'Statistics',
      description:
        'The crawlers of the token with their settings, queues and counts, and the sums over all: waiting, running, completed, failed.',
      inputSchema: z.object({
        name_contains: z.string().max(64).default('').describe('Only crawlers with this name.'),
        history_from: day.describe('First day of the history, YYYY-MM-DD.'),
        history_to: day.describe('Last day of the history, YYYY-MM-DD.'),
      }),
      annotations: READS,
    },
    (input, { mcpReq: { signal } }) =>
      answering(async () => {
        const { history_from: historyFrom = '', history_to: historyTo = '' } = input;
        const stats = await client.stats.getStats(
          { historyFrom, historyTo, withoutCrawlerHistory: true },
          { signal },
        );
        const wanted = input.name_contains.toLowerCase();
        const crawlers = stats.crawlers.filter(({ name }) => name.toLowerCase().includes(wanted));
        const shown = {
          ...stats,
          history: stats.history.slice(-MAX_ROWS),
          crawlers: crawlers.slice(0, MAX_ROWS),
        };
        const more = crawlers.length - shown.crawlers.length;
        const note = more > 0 ? { note: `${more} further crawlers: use name_contains.` } : {};
        return reply({ ...toPlain(GetStatsResponseSchema, shown), ...note });
      }),
  );

  server.registerTool(
    'why_failed',
    {
      title: 'Why did it fail?',
      description:
        'Says why a URL failed, is late, or was not delivered, by its rid: where the job is, its last failure, its result, its delivery with the attempts. Or, by the name of a crawler, the latest failures in groups by reason.',
      inputSchema: z.object({
        rid: z
          .string()
          .regex(/^[0-9a-f]{24}$/)
          .optional(),
        crawler: z.string().max(128).optional(),
      }),
      annotations: READS,
    },
    ({ rid = '', crawler = '' }, { mcpReq: { signal } }) =>
      answering(async () => {
        if ((rid === '') === (crawler === '')) return errorReply('Give either rid or crawler.');
        if (rid !== '') {
          const found = await client.activity.findRid({ rid }, { signal });
          return reply(toPlain(FindRidResponseSchema, found));
        }
        const failures = await client.activity.listFailures({ name: crawler }, { signal });
        const groups = failures.groups.slice(0, MAX_ROWS);
        return reply(toPlain(ListFailuresResponseSchema, { ...failures, groups }));
      }),
  );
}
