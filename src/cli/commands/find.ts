import { Command } from 'commander';
import {
  FindRidResponseSchema,
  SearchResponseSchema,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { isRid } from '../../domain/rid.ts';
import { type CommandContext, openSession, type Session } from '../command-context.ts';
import { examples } from '../examples.ts';
import { printable, printableValue } from '../output.ts';

/** `find`: where a job is, or what became of it. */
export function createFindCommand(context: CommandContext): Command {
  return new Command('find')
    .description(
      'Tell what happened to a rid, or look for a URL, a part of one, a host or the name of a crawler.',
    )
    .argument('<text>', 'the rid, or what to look for')
    .addHelpText(
      'after',
      examples(
        'queued-crawler find 6650f1c2a9b3d4e5f6071829',
        'queued-crawler find shop.example/p/',
      ),
    )
    .action(async (text: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const rid = text.trim();
      if (!isRid(rid)) return search(session, rid);
      const plain = toPlain(FindRidResponseSchema, await client.activity.findRid({ rid }));
      if (output.isJson) return output.json(plain);
      if (plain.crawler !== '') await output.line(`crawler   ${printableValue(plain.crawler)}`);
      for (const part of ['job', 'result', 'delivery'] as const) {
        if (plain[part] === undefined) continue;
        const facts = plain[part] as Record<string, unknown>;
        for (const [name, value] of Object.entries(facts)) {
          if (name === 'rid' || name === 'attempts') continue;
          await output.line(`${part.padEnd(9)} ${name}: ${printableValue(value)}`);
        }
      }
      for (const each of (plain['tries'] ?? []) as Record<string, unknown>[]) {
        const { started_at: at, failure = 'ended well', original_status: status } = each;
        const took = `${plainText(each['duration_ms'])} ms`;
        const told = [at, status, failure].map(plainText).join(' ');
        await output.line(printable(`try       ${told}, ${took}`));
      }
      const wait = plainText(plain['waits_for']);
      if (wait !== '') await output.line(printable(`waits     for ${wait}`));
    });
}

async function search({ client, output }: Session, query: string): Promise<void> {
  const plain = toPlain(SearchResponseSchema, await client.activity.search({ query }));
  if (output.isJson) return output.json(plain);
  for (const name of (plain['crawlers'] ?? []) as string[]) {
    await output.line(`crawler   ${printable(name)}`);
  }
  const hits = (plain['hits'] ?? []) as Record<string, unknown>[];
  await output.table(
    ['RID', 'WHERE', 'CRAWLER', 'AT', 'URL'],
    hits.map(({ rid, kind, crawler, at, url }) =>
      [rid, kind, crawler, at, url].map(printableValue),
    ),
  );
  if (plain['is_partial'] === true)
    output.note('there may be more; only the latest were looked through');
}
