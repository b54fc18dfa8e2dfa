import { useSignal } from '@preact/signals';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useAction } from '../../api/use-action.ts';
import { LocalTime } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { navigate } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import { toast } from '../../ui/toasts.tsx';
import { draftOf, requestOf, SettingFields } from '../crawlers/crawler-form.tsx';
import { snakeCased } from '../crawlers/snake-cased.ts';
import type { CrawlerView } from './crawler-page.tsx';

/** What can be changed of a crawler, its signing secret, and how to be rid of it. */
export function SettingsTab({ view }: { readonly view: CrawlerView }) {
  const { crawler } = view;
  const isWebhook = deliveryOf(crawler).postsToCallback;
  const draft = useSignal(draftOf(crawler));
  const settings = requestOf(draft.value, isWebhook);
  const save = useAction(async () => {
    await clientsFor(view.type).crawlers.updateCrawler({ name: crawler.name, ...settings });
    toast('Saved; it applies at once.');
    view.refresh();
  });
  return (
    <div class="split">
      <div class="stack">
        <Card title="Settings">
          <Form onSubmit={() => void save.run()}>
            <SettingFields
              draft={draft.value}
              isWebhook={isWebhook}
              fault={save.fault}
              onChange={(next) => {
                draft.value = next;
              }}
            />
            <FaultNotice fault={save.fault} />
            <div class="row spread">
              <span class="muted small">
                Changed <LocalTime at={crawler.updatedAt} />
              </span>
              <Button kind="primary" submit busy={save.busy}>
                Save
              </Button>
            </div>
          </Form>
        </Card>
        {isWebhook && <SecretCard view={view} />}
        <DangerCard view={view} />
      </div>
      <Card>
        <CallPreview
          example={{
            rest: {
              method: 'PUT',
              path: `/crawler/$TOKEN/${crawler.name}`,
              body: snakeCased(settings),
            },
            grpc: {
              method: 'CrawlerService/UpdateCrawler',
              message: { name: crawler.name, ...settings },
            },
          }}
        />
      </Card>
    </div>
  );
}

function SecretCard({ view }: { readonly view: CrawlerView }) {
  const made = useSignal<{ readonly secret: string } | undefined>(undefined);
  const rotate = useAction(async () => {
    const { webhookSecret } = await clientsFor(view.type).crawlers.rotateWebhookSecret({
      name: view.crawler.name,
    });
    made.value = { secret: webhookSecret };
  });
  return (
    <Card
      title="Signing secret"
      actions={
        <Button busy={rotate.busy} onClick={() => void rotate.run()}>
          Make a new one
        </Button>
      }
    >
      <div class="stack">
        <p class="muted">
          Deliveries are signed as Standard Webhooks says. After a new secret is made, the one
          before it signs as well for 24 hours.
        </p>
        <FaultNotice fault={rotate.fault} />
        {made.value !== undefined && (
          <Notice kind="ok" title="Keep it now: it is shown this once.">
            <CodeBlock label="Webhook secret" text={made.value.secret} wrap />
          </Notice>
        )}
      </div>
    </Card>
  );
}

function DangerCard({ view }: { readonly view: CrawlerView }) {
  const { name, activity } = view.crawler;
  const asked = useSignal<'purge' | 'delete' | undefined>(undefined);
  const { crawlers } = clientsFor(view.type);
  const queued = (activity?.waiting ?? 0n) + (activity?.retrying ?? 0n);
  const close = (): void => {
    asked.value = undefined;
  };
  return (
    <Card title="Cannot be undone">
      <div class="row">
        <Button
          kind="danger"
          onClick={() => {
            asked.value = 'purge';
          }}
        >
          Purge the queue…
        </Button>
        <Button
          kind="danger"
          onClick={() => {
            asked.value = 'delete';
          }}
        >
          Delete the crawler…
        </Button>
      </div>
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
    </Card>
  );
}
