import { Command } from 'commander';
import { FindJobResponseSchema } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { plainText, toPlain } from '../message-json.ts';
import { printable } from '../output.ts';

/** `find`: whether a job is queued, and whether its result is stored. */
export function createFindCommand(context: CommandContext): Command {
  return new Command('find')
    .description('Look for a rid: in the queue of its crawler, and in storage.')
    .argument('<crawler>', 'the crawler it was pushed to')
    .argument('<rid>', 'the rid')
    .addHelpText('after', examples('queued-crawler find shop 6650f1c2a9b3d4e5f6071829'))
    .action(async (crawler: string, rid: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const [found, stored] = await Promise.all([
        client.crawlers.findJob({ name: crawler, rid }),
        client.storage.bulkGetResults({ rids: [rid] }),
      ]);
      const plain = toPlain(FindJobResponseSchema, found);
      const [result] = stored.results;
      if (output.isJson) {
        const summary = result === undefined ? {} : { stored: true, cb_status: result.cbStatus };
        await output.json({ ...plain, stored: false, ...summary });
        return;
      }
      const { url = '', retry = 0, createdAt } = found.requestInfo ?? {};
      await output.line(plainText(plain.status));
      if (createdAt !== undefined) {
        const at = new Date(createdAt * 1_000).toISOString();
        await output.line(`pushed ${at}, tried again ${retry} times: ${printable(url)}`);
      }
      if (result !== undefined) {
        await output.line(`stored, cb_status ${result.cbStatus}: ${printable(result.url)}`);
      }
    });
}
