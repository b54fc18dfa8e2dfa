import { Command } from 'commander';
import { type Batch, BatchSchema } from '../../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { reconnect } from '../../client/reconnect.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { assertConfirmed, operationsOnPart } from '../operations.ts';
import { printable } from '../output.ts';
import { printPages } from '../print-pages.ts';

const COLUMNS = ['accepted', 'waiting', 'retrying', 'running', 'completed', 'failed', 'removed'];

/** `batches`: lists of URLs that were pushed under a name. */
export function createBatchesCommand(context: CommandContext): Command {
  const group = new Command('batches').description(
    'List, follow, close and cancel the batches of a crawler; "push --batch" makes them.',
  );
  group
    .command('list')
    .description('List the batches of a crawler, the newest first.')
    .argument('<crawler>', 'its name')
    .option('--limit <n>', 'most batches', wholeNumber('--limit', 1, 100_000), 100)
    .addHelpText('after', examples('queued-crawler batches list shop'))
    .action(async (name: string, { limit }: { limit: number }, command: Command) => {
      using session = await openSession(context, command);
      await printPages(session.output, limit, {
        desc: BatchSchema,
        async read(pageSize, pageToken) {
          const request = { name, pageSize, pageToken };
          const { batches, nextPageToken } = await session.client.batches.listBatches(request);
          return { items: batches, nextPageToken };
        },
        none: 'no batches; "push --batch NAME" makes one',
        heading: ['BATCH', 'STATE', '%', ...COLUMNS.map((each) => each.toUpperCase()), 'CREATED'],
        row: (plain) => [
          plain.name,
          plain.state,
          plain.percent,
          ...COLUMNS.map((each) => plain[each]),
          plain.created_at,
        ],
      });
    });

  const operation = operationsOnPart(context, group, 'batch', 'its name');

  operation('show', 'Show what a batch has done and has left.', async (session, target) => {
    const { batch } = await session.client.batches.getBatch(target);
    await show(session, batch);
  }).addHelpText('after', examples('queued-crawler batches show shop monday'));
  operation('watch', 'Follow a batch until it is complete.', async (session, target) => {
    const { client, signal, tellWait } = session;
    const open = () => client.batches.watchBatch(target, { signal });
    for await (const { batch } of reconnect(open, { signal, onLost: tellWait })) {
      await show(session, batch);
    }
  }).addHelpText('after', examples('queued-crawler batches watch shop monday'));
  operation('close', 'Take no further URLs into a batch.', async (session, target) => {
    const { batch } = await session.client.batches.closeBatch(target);
    await show(session, batch);
  }).addHelpText('after', examples('queued-crawler batches close shop monday'));
  operation(
    'cancel',
    'Close a batch and remove its waiting URLs, for good.',
    async ({ client, output }, target, yes) => {
      const { name, batch } = target;
      assertConfirmed(yes, `every waiting URL of the batch ${batch} of ${name} is removed`);
      let all = 0n;
      for (let isOver = false; !isOver; ) {
        const { removed, hasMore } = await client.batches.cancelBatch(target);
        all += removed;
        isOver = !hasMore;
      }
      await output.tell({ batch, removed: Number(all) }, `${all} URLs removed`);
    },
  )
    .option('--yes', 'really do it')
    .addHelpText('after', examples('queued-crawler batches cancel shop monday --yes'));
  return group;
}

async function show({ output }: Session, batch: Batch | undefined): Promise<void> {
  if (batch === undefined) return;
  const plain = toPlain(BatchSchema, batch);
  if (output.isJson) {
    await output.json(plain);
    return;
  }
  const counts = COLUMNS.map((each) => `${plainText(plain[each])} ${each}`);
  const failures = batch.failures.map(({ reason, count }) => `${reason} ${count}`).join(', ');
  const left = batch.secondsLeft === undefined ? '' : `, about ${batch.secondsLeft} s left`;
  const why = failures === '' ? '' : ` (${failures})`;
  const head = `${batch.name} ${plainText(plain.state)} ${batch.percent} %${left}`;
  await output.line(printable(`${head}: ${counts.join(', ')}${why}`));
}
