import { useSignal } from '@preact/signals';
import type { Crawler } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { faultOf } from '../../api/fault.ts';
import { count } from '../../format/numbers.ts';
import { AskingButton } from '../../ui/asking-button.tsx';
import { toast } from '../../ui/toasts.tsx';

/** Calls that are made at a time. */
const AT_ONCE = 5;

/** Pauses or unpauses the chosen crawlers. */
export function BulkPause(props: {
  readonly chosen: readonly Crawler[];
  readonly onDone: () => void;
}) {
  const { chosen, onDone } = props;
  const done = useSignal(0);
  const change = async (method: 'pauseCrawler' | 'unpauseCrawler', past: string): Promise<void> => {
    done.value = 0;
    // The clients of the account that has chosen them, also after another one has signed in.
    const left = chosen.map(({ name, tokenType }) => ({ name, clients: clientsFor(tokenType) }));
    const failed: string[] = [];
    const work = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { name, clients } = next;
        try {
          await clients.crawlers[method]({ name });
          done.value += 1;
        } catch (error) {
          failed.push(`${name}: ${faultOf(error).text}`);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    onDone();
    if (failed.length > 0) throw new Error(failed.slice(0, 5).join(' '));
    toast(`${count(done.value)} crawlers ${past}.`);
  };
  const names = chosen.map(({ name }) => name).join(', ');
  const progress = (
    <>
      <p class="break">{names}</p>
      {done.value > 0 && (
        <p role="status">
          {count(done.value)} of {count(chosen.length)} done
        </p>
      )}
    </>
  );
  return (
    <>
      <AskingButton
        small
        text={`Pause ${count(chosen.length)}`}
        question={`Pause ${count(chosen.length)} crawlers?`}
        verb="Pause"
        perform={() => change('pauseCrawler', 'paused')}
      >
        {progress}
        <p>They start no crawls until they are unpaused. What is being crawled finishes.</p>
      </AskingButton>
      <AskingButton
        small
        text={`Unpause ${count(chosen.length)}`}
        question={`Unpause ${count(chosen.length)} crawlers?`}
        verb="Unpause"
        perform={() => change('unpauseCrawler', 'unpaused')}
      >
        {progress}
        <p>They start to crawl what waits. That includes crawlers that the monitoring paused.</p>
      </AskingButton>
    </>
  );
}
