import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { FailureGroup } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { useAction } from '../../api/use-action.ts';
import { count } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import type { CrawlerView } from './crawler-page.tsx';

/** Pushes all failed crawls of a group again, and says how far it is. */
export function PushAgainDialog(props: {
  readonly view: CrawlerView;
  readonly group: FailureGroup;
  readonly onClose: () => void;
}) {
  const { view, group, onClose } = props;
  const pushed = useSignal<{ accepted: number; before: number; refused: number } | undefined>(
    undefined,
  );
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const push = useAction(async () => {
    let sum = { accepted: 0, before: 0, refused: 0 };
    pushed.value = sum;
    const { reason, originalStatus } = group;
    const request = { crawler: view.crawler.name, reason, originalStatus };
    const { signal } = leaving.current;
    for await (const { results } of clientsFor(view.type).pushes.pushAgain(request, { signal })) {
      const refused = results.filter(({ error }) => error !== undefined).length;
      const before = results.filter(({ duplicate }) => duplicate).length;
      sum = {
        accepted: sum.accepted + results.length - refused - before,
        before: sum.before + before,
        refused: sum.refused + refused,
      };
      pushed.value = sum;
    }
    view.refresh();
  });
  return (
    <Dialog title={`Push again: ${group.reason.replaceAll('_', ' ')}`} onClose={onClose}>
      <p>
        Pushes every crawl that failed for this reason again, as it was pushed. One that was pushed
        again before is left out.
      </p>
      <FaultNotice fault={push.fault} />
      {pushed.value !== undefined && (
        <Notice
          title={`${count(pushed.value.accepted)} pushed again, ${count(pushed.value.before)} before, ${count(pushed.value.refused)} refused${push.busy ? '…' : '.'}`}
        />
      )}
      <div class="row end">
        <Button onClick={onClose}>Close</Button>
        <Button kind="primary" busy={push.busy} onClick={() => void push.run()}>
          Push again
        </Button>
      </div>
    </Dialog>
  );
}
