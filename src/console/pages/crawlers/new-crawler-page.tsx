import { useSignal } from '@preact/signals';
import { type Crawler, TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { tokenTypes } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { ONCE_MS, useFeed } from '../../api/use-feed.ts';
import { derivedName } from '../../format/derived-name.ts';
import { Link, navigate, query } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { FaultNotice, Loading } from '../../ui/notice.tsx';
import { ShownOnce } from '../../ui/shown-once.tsx';
import { toast } from '../../ui/toasts.tsx';
import { knownCrawlers, typeOfCrawler } from './crawler-feed.ts';
import { CallbackField, draftOf, emptyDraft, requestOf, SettingFields } from './crawler-form.tsx';
import { snakeCased } from './snake-cased.ts';

/** Makes a crawler, with every field of the contract; `like` in the address names one to copy. */
export function NewCrawlerPage() {
  const like = query.value.get('like') ?? '';
  if (like === '') return <NewCrawlerForm like={undefined} />;
  return <Duplicate key={like} of={like} />;
}

function Duplicate({ of: name }: { readonly of: string }) {
  const { data, fault } = useFeed({
    key: `like ${name}`,
    everyMs: ONCE_MS,
    poll: async () => ({ like: await crawlerCalled(name) }),
  });
  if (data === undefined) return <Loading fault={fault} />;
  return <NewCrawlerForm like={data.like} />;
}

async function crawlerCalled(name: string): Promise<Crawler | undefined> {
  const type = await typeOfCrawler(name);
  if (type === undefined) return undefined;
  return (await clientsFor(type).crawlers.getCrawler({ name })).crawler;
}

function NewCrawlerForm({ like }: { readonly like: Crawler | undefined }) {
  const name = useSignal('');
  const isWebhook = useSignal(like !== undefined && deliveryOf(like).postsToCallback);
  const type = useSignal<TokenType>(like?.tokenType ?? tokenTypes.value[0] ?? TokenType.NORMAL);
  const draft = useSignal(like === undefined ? emptyDraft : draftOf(like));
  const secret = useSignal<{ readonly of: string; readonly text: string } | undefined>(undefined);
  const derived = isWebhook.value ? freeName(draft.value.callbackUrl) : '';
  const chosen = name.value || derived;
  const settings = requestOf(draft.value, isWebhook.value);
  const create = useAction(async () => {
    const { crawler, created } = await clientsFor(type.value).crawlers.createCrawler({
      name: chosen,
      ...settings,
    });
    toast(created ? `Created crawler ${chosen}.` : `${chosen} already exists with these settings.`);
    if (crawler?.webhookSecret === undefined) navigate(`/crawlers/${chosen}/push`);
    else secret.value = { of: chosen, text: crawler.webhookSecret };
  });
  const message = { name: chosen, ...settings };

  return (
    <>
      <div class="page-head">
        <div>
          <h1>New crawler</h1>
          <p>One for each kind of work: crawlers share neither their queue nor their pace.</p>
        </div>
      </div>
      <div class="split">
        <Card>
          <Form onSubmit={() => void create.run()}>
            <TextField
              label="Name"
              name="name"
              fault={create.fault}
              {...bound(name)}
              pattern="[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}"
              help="1 to 64 letters, digits, _ . or -; it stands in paths and cannot change. Empty: the host of the callback URL."
              placeholder={derived}
              required={derived === ''}
              autofocus
              mono
            />
            <Choices
              legend="Where results go (cannot change)"
              value={isWebhook.value ? 'webhook' : 'storage'}
              options={[
                ['storage', 'Storage', 'Kept here for days, read by rid.', false],
                ['webhook', 'Webhook', 'Each POSTed to your URL, never stored.', false],
              ]}
              onPick={(value) => {
                isWebhook.value = value === 'webhook';
                if (!isWebhook.value) draft.value = { ...draft.value, callbackUrl: '' };
              }}
            />
            <CallbackField
              draft={draft.value}
              fault={create.fault}
              required={isWebhook.value}
              onChange={(next) => {
                draft.value = next;
                if (next.callbackUrl !== '') isWebhook.value = true;
              }}
            />
            <Choices
              legend="Token type (cannot change)"
              value={String(type.value)}
              options={TYPES.map(([each, title, help]) => [
                String(each),
                title,
                tokenTypes.value.includes(each)
                  ? help
                  : 'Add that token on the account page first.',
                !tokenTypes.value.includes(each),
              ])}
              onPick={(value) => {
                type.value = Number(value) as TokenType;
              }}
            />
            <SettingFields
              draft={draft.value}
              isWebhook={isWebhook.value}
              fault={create.fault}
              onChange={(next) => {
                draft.value = next;
              }}
            />
            <FaultNotice fault={create.fault} />
            <div class="row end">
              <Link to="/crawlers" class="button">
                Cancel
              </Link>
              <Button kind="primary" submit busy={create.busy}>
                Create crawler
              </Button>
            </div>
          </Form>
        </Card>
        <Card>
          <CallPreview
            example={{
              rest: { method: 'POST', path: '/crawler/$TOKEN', body: snakeCased(message) },
              grpc: { method: 'CrawlerService/CreateCrawler', message },
            }}
          />
        </Card>
      </div>
      {secret.value !== undefined && (
        <ShownOnce
          title="Save the signing secret"
          secrets={[['Webhook secret', secret.value.text]]}
          onSaved={() => navigate(`/crawlers/${secret.peek()?.of}/push`)}
        >
          <p>
            It signs every delivery, so that your handler can tell it from a forged one. It is shown
            this once.
          </p>
        </ShownOnce>
      )}
    </>
  );
}

/** The host of a URL as the name of a crawler, with a number when a crawler has that name already. */
function freeName(url: string): string {
  const name = derivedName(URL.parse(url)?.host ?? '');
  if (name === '') return '';
  const taken = new Set(knownCrawlers.value.map((each) => each.name));
  let free = name;
  for (let number = 2; taken.has(free); number += 1) free = `${name.slice(0, 58)}-${number}`;
  return free;
}

const TYPES = [
  [TokenType.NORMAL, 'Normal', 'Plain requests: fast and light.'],
  [TokenType.JAVASCRIPT, 'JavaScript', 'A browser: for pages that scripts build.'],
] as const;

function Choices(props: {
  readonly legend: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string, string, boolean])[];
  readonly onPick: (value: string) => void;
}) {
  return (
    <fieldset class="choices">
      <legend>{props.legend}</legend>
      {props.options.map(([value, title, help, disabled]) => (
        <label class="choice" key={value}>
          <input
            type="radio"
            name={props.legend}
            checked={props.value === value}
            disabled={disabled}
            onInput={() => props.onPick(value)}
          />
          <span>
            <strong>{title}</strong>
            <span class="muted small">{help}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
