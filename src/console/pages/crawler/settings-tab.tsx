import { useSignal } from '@preact/signals';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { useAction } from '../../api/use-action.ts';
import { LocalTime } from '../../format/moment.tsx';
import { Link } from '../../shell/route.tsx';
import { AskingButton } from '../../ui/asking-button.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { Form } from '../../ui/form.tsx';
import { FaultNotice, LiveNotice } from '../../ui/notice.tsx';
import { ShownOnce } from '../../ui/shown-once.tsx';
import { toast } from '../../ui/toasts.tsx';
import { CallbackField, changedSettings, SettingFields } from '../crawlers/crawler-form.tsx';
import { snakeCased } from '../crawlers/snake-cased.ts';
import type { CrawlerView } from './crawler-page.tsx';
import { useSettingsEdit } from './settings-edit.ts';

/** What can be changed of a crawler, and its signing secret. */
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
            {isWebhook && (
              <CallbackField draft={draft} fault={save.fault} required onChange={edit} />
            )}
            <SettingFields
              draft={draft}
              isWebhook={isWebhook}
              fault={save.fault}
              required
              onChange={edit}
            />
            <LiveNotice
              isOn={overtaken.length > 0}
              kind="warn"
              title="Somebody else has changed this"
            >
              <ul>
                {overtaken.map(({ title, now, mine }) => (
                  <li key={title}>
                    {title} is now {now}. Saving sets it to {mine}.
                  </li>
                ))}
              </ul>
            </LiveNotice>
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
      </div>
      {Object.keys(settings).length > 0 && (
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
      )}
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
