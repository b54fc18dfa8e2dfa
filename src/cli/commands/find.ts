import { Command } from 'commander';
import { FindRidResponseSchema } from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { printable } from '../output.ts';

/** `find`: where a job is, or what became of it. */
export function createFindCommand(context: CommandContext): Command {
  return new Command('find')
    .description('Look for a rid: in the queues of all crawlers, in storage and among deliveries.')
    .argument('<rid>', 'the rid')
    .addHelpText('after', examples('queued-crawler find 6650f1c2a9b3d4e5f6071829'))
    .action(async (rid: string, _options: unknown, command: Command) => {
      using session = await openSession(context, command);
      const { client, output } = session;
      const plain = toPlain(FindRidResponseSchema, await client.activity.findRid({ rid }));
      if (output.isJson) return output.json(plain);
      if (plain.crawler !== '') await output.line(`crawler   ${plainText(plain.crawler)}`);
      for (const part of ['job', 'result', 'delivery'] as const) {
        if (plain[part] === undefined) continue;
        const facts = plain[part] as Record<string, unknown>;
        for (const [name, value] of Object.entries(facts)) {
          if (name === 'rid' || name === 'attempts') continue;
          await output.line(`${part.padEnd(9)} ${name}: ${printable(plainText(value))}`);
        }
      }
    });
}
