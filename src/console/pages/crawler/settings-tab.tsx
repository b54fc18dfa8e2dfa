import { useSignal } from '@preact/signals';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useAction } from '../../api/use-action.ts';
import { LocalTime } from '../../format/moment.tsx';
import { count } from '../../format/numbers.ts';
import { Link, navigate } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { ConfirmByName } from '../../ui/confirm-by-name.tsx';
import { Form } from '../../ui/form.tsx';
import { FaultNotice, Notice } from '../../ui/notice.tsx';
import { ShownOnce } from '../../ui/shown-once.tsx';
import { toast } from '../../ui/toasts.tsx';
import { changedSettings, SettingFields } from '../crawlers/crawler-form.tsx';
import { snakeCased } from '../crawlers/snake-cased.ts';
import type { CrawlerView } from './crawler-page.tsx';
import { useSettingsEdit } from './settings-edit.ts';

/** What can be changed of a crawler, its signing secret, and how to be rid of it. */
export function SettingsTab({ view }: { readonly view: CrawlerView }) {
  const { crawler } = view;
  const isWebhook = deliveryOf(crawler).postsToCallback;
  const { draft, edited, overtaken, edit, discard } = useSettingsEdit(crawler);
  const settings = changedSettings(crawler, draft, isWebhook);
  const save = useAction(async () => {
    const { name, etag } = crawler;
    try {
      await clientsFor(view.type).crawlers.updateCrawler({ name, etag, ...settings });
    } finally {
      // Also to show what others have changed.
      view.refresh();
    }
    discard();
    toast('Saved; it applies at once.');
  });
  return (
    <div class="split">
      <div class="stack">
        <Card
          title="Settings"
          actions={
            <Link to={`/crawlers/+new?like=${crawler.name}`} class="button">
              Duplicate
            </Link>
          }
        >
          <Form onSubmit={() => void save.run()}>
            <SettingFields
              draft={draft}
              isWebhook={isWebhook}
              fault={save.fault}
              required
              onChange={edit}
            />
            {overtaken.length > 0 && (
              <Notice kind="warn" title="Somebody else has changed this">
                <ul>
                  {overtaken.map(({ title, now, mine }) => (
                    <li key={title}>
                      {title} is now {now}. Saving sets it to {mine}.
                    </li>
                  ))}
                </ul>
              </Notice>
            )}
            <FaultNotice fault={save.fault} />
            <div class="row spread">
              <span class="muted small">
                {edited.length > 0 ? (
                  `Not saved: ${edited.join(', ')}`
                ) : (
                  <>
                    Changed <LocalTime at={crawler.updatedAt} />
                  </>
                )}
              </span>
              <div class="row">
                {edited.length > 0 && <Button onClick={discard}>Discard</Button>}
                <Button kind="primary" submit busy={save.busy} disabled={edited.length === 0}>
                  Save
                </Button>
              </div>
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
  const secret = useSignal('');
  const rotate = async (): Promise<void> => {
    const { webhookSecret } = await clientsFor(view.type).crawlers.rotateWebhookSecret({
      name: view.crawler.name,
    });
    secret.value = webhookSecret;
  };
  return (
    <Card
      title="Signing secret"
      actions={
        <AskingButton
          text="New secret"
          question="Replace the signing secret?"
          verb="Replace"
          perform={rotate}
        >
          <p>
            Receivers have to know the new secret within 24 hours. Until then deliveries are signed
            by both.
          </p>
        </AskingButton>
      }
    >
      <div class="stack">
        <p class="muted">
          Deliveries are signed as Standard Webhooks says. After a new secret is made, the one
          before it signs as well for 24 hours.
        </p>
        {secret.value !== '' && (
          <ShownOnce
            title="Save the new signing secret"
            secrets={[['Webhook secret', secret.value]]}
            onSaved={() => {
              secret.value = '';
            }}
          >
            <p>Receivers have to know it within 24 hours. It is shown this once.</p>
          </ShownOnce>
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
    <Card title="Danger zone">
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
