import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { DeliveryState } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { count } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CheckField, TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import type { CrawlerView } from './crawler-page.tsx';

/** Deliveries that one call makes due; a large range takes several. */
const STEP = 1_000;

/** Delivers again what was crawled between two moments, a part at a time, and says how far it is. */
export function ReplayRange(props: { readonly view: CrawlerView; readonly onClose: () => void }) {
  const { view, onClose } = props;
  const from = useSignal(localInput(Date.now() - 3_600_000));
  const to = useSignal(localInput(Date.now() + 60_000));
  const onlyFailed = useSignal(true);
  const replayed = useSignal<bigint | undefined>(undefined);
  const isStopped = useRef(false);
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );
  const replay = useAction(async () => {
    replayed.value = 0n;
    let pageToken = '';
    do {
      const reply = await clientsFor(view.type).crawlers.replayDeliveries({
        name: view.crawler.name,
        from: timestampFromDate(new Date(from.value)),
        to: timestampFromDate(new Date(to.value)),
        state: onlyFailed.value ? DeliveryState.FAILED : DeliveryState.UNSPECIFIED,
        maxCount: STEP,
        pageToken,
      });
      replayed.value += reply.replayed;
      pageToken = reply.nextPageToken;
    } while (pageToken !== '' && !isStopped.current);
  });
  return (
    <Dialog title="Replay a time range" onClose={onClose}>
      <Form onSubmit={() => void replay.run()}>
        <p class="muted">
          Sends results again whose crawl ended in this time, in your local time. Each attempt
          counts as billed.
        </p>
        <div class="fields">
          <TextField
            label="From"
            name="from"
            type="datetime-local"
            fault={replay.fault}
            {...bound(from)}
            required
          />
          <TextField
            label="To"
            name="to"
            type="datetime-local"
            fault={replay.fault}
            {...bound(to)}
            required
          />
        </div>
        <CheckField label="Only failed deliveries" {...bound(onlyFailed)} />
        <FaultNotice fault={replay.fault} />
        {replayed.value !== undefined && (
          <Notice title={`Queued for replay: ${count(replayed.value)}${replay.busy ? '…' : '.'}`} />
        )}
        <div class="row end">
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" submit busy={replay.busy}>
            Replay
          </Button>
        </div>
      </Form>
    </Dialog>
  );
}

/** A moment as an input of local time has it. */
function localInput(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
