import { useSignal } from '@preact/signals';
import { clientsFor } from '../../api/clients.ts';
import { count } from '../../format/numbers.ts';
import { navigate } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { toast } from '../../ui/toasts.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { forgetPasted } from './push-tab.tsx';
import { forgetEdits } from './settings-edit.ts';

/** Purges the queue of a crawler, or deletes the crawler; both ask for its name. */
export function RemovalButtons({ view }: { readonly view: CrawlerView }) {
  const { name, activity } = view.crawler;
  const asked = useSignal<'purge' | 'delete' | undefined>(undefined);
  const { crawlers } = clientsFor(view.type);
  const queued = (activity?.waiting ?? 0n) + (activity?.retrying ?? 0n);
  const close = (): void => {
    asked.value = undefined;
  };
  return (
    <>
      <Button
        kind="plain"
        class="bad-text"
        opensDialog
        onClick={() => {
          asked.value = 'purge';
        }}
      >
        Purge the queue…
      </Button>
      <Button
        kind="plain"
        class="bad-text"
        opensDialog
        onClick={() => {
          asked.value = 'delete';
        }}
      >
        Delete…
      </Button>
      {asked.value === 'purge' && (
        <ConfirmByName
          title={`Purge ${name}`}
          name={name}
          verb="Purge"
          onClose={close}
          perform={async () => {
            const { purged } = await crawlers.purgeCrawler({ name });
            close();
            toast(`Removed ${count(purged)} URLs from the queue.`);
            view.refresh();
          }}
        >
          <p>
            Removes all {count(queued)} URLs that wait, retries included. What is being crawled
            finishes; the crawler stays.
          </p>
        </ConfirmByName>
      )}
      {asked.value === 'delete' && (
        <ConfirmByName
          title={`Delete ${name}`}
          name={name}
          verb="Delete"
          onClose={close}
          perform={async () => {
            const { purged } = await crawlers.deleteCrawler({ name });
            forgetEdits(name);
            forgetPasted(name);
            toast(`Deleted ${name}, and ${count(purged)} URLs with it.`);
            navigate('/crawlers');
          }}
        >
          <p>
            Removes the crawler, its {count(queued)} waiting URLs, its pending deliveries and its
            statistics. What is being crawled is aborted.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}
