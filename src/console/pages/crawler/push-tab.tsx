import { type Signal, signal, useSignal } from '@preact/signals';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { count } from '../../format/numbers.ts';
import { Link } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { DataTable } from '../../ui/data-table.tsx';
import { download } from '../../ui/download.ts';
import { CheckField, TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { Meter } from '../../ui/meter.tsx';
import { FaultNotice } from '../../ui/notice.tsx';
import {
  type ParameterDraft,
  ParameterFields,
  parametersOf,
  queryOf,
} from '../crawl/parameter-fields.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { outcomeText, type PushRun, runInto, startPush, urlsOf } from './push-run.ts';

/** Items of a list that are shown. */
const MAX_SHOWN = 200;

/** What is pasted and not pushed yet, by crawler; kept while other pages are shown. */
const pasted = new Map<string, Signal<string>>();

function pastedFor(crawler: string): Signal<string> {
  const text = pasted.get(crawler) ?? signal('');
  pasted.set(crawler, text);
  return text;
}

/** Puts URLs into the queue: one, or a pasted list, with progress and what became of each. */
export function PushTab({ view }: { readonly view: CrawlerView }) {
  const { crawler, type } = view;
  const text = pastedFor(crawler.name);
  const draft = useSignal<ParameterDraft>({});
  const timeout = useSignal('');
  const headers = useSignal('');
  const metadata = useSignal('');
  const priority = useSignal('');
  const isUnique = useSignal(crawler.unique ?? false);
  const delay = useSignal('');
  const run = runInto(crawler.name);
  const isOpen = run !== undefined && run.state !== 'ended';

  const urls = urlsOf(text.value);
  const isWebhook = deliveryOf(crawler).postsToCallback;
  const item = {
    ...(timeout.value === '' ? {} : { queueTimeout: Number(timeout.value) }),
    ...(headers.value === '' || !isWebhook ? {} : { callbackHeaders: headers.value }),
    ...(priority.value === '' ? {} : { priority: Number(priority.value) }),
    ...(isUnique.value === (crawler.unique ?? false) ? {} : { unique: isUnique.value }),
    ...(delay.value === '' ? {} : { delay: Number(delay.value) }),
    ...(metadata.value === '' ? {} : { metadata: metadata.value }),
    ...(Object.keys(draft.value).length === 0 ? {} : { parameters: parametersOf(draft.value) }),
  };
  const push = (): void => {
    startPush(clientsFor(type).pushes, crawler.name, urls, item, view.refresh);
    text.value = '';
  };
  const first = encodeURIComponent(urls[0] ?? 'https://example.com/');

  return (
    <div class="split">
      <div class="stack">
        <Card title="Push URLs">
          <Form
            onSubmit={() => {
              if (urls.length > 0 && !isOpen) push();
            }}
          >
            <TextField
              label="URLs, one a line"
              lines
              mono
              autofocus
              {...bound(text)}
              placeholder="https://example.com/"
              help={`${count(urls.length)} to push. Repeated lines are pushed once.`}
              required
            />
            <div class="fields">
              <TextField
                label="Queue timeout, minutes"
                name="queue_timeout"
                type="number"
                min={0}
                max={10_080}
                {...bound(timeout)}
                placeholder="none"
                help="A URL that waits longer ends with cb_status 699."
              />
              <TextField
                label="Priority"
                name="priority"
                type="number"
                min={0}
                max={9}
                {...bound(priority)}
                placeholder="5"
                help="A higher one goes first."
              />
              <TextField
                label="Delay, seconds"
                name="delay"
                type="number"
                min={0}
                max={2_592_000}
                {...bound(delay)}
                placeholder="none"
                help="The URLs wait as scheduled until then."
              />
              <TextField
                label="Metadata"
                name="metadata"
                {...bound(metadata)}
                placeholder='{"order": 42}'
                help="JSON that comes back with each result."
              />
              {isWebhook && (
                <TextField
                  label="Callback headers"
                  name="callback_headers"
                  {...bound(headers)}
                  placeholder="X-Job:42|X-Kind:daily"
                  help="Sent along with each delivery."
                />
              )}
            </div>
            <CheckField
              label="Once"
              help="A URL that waits or is being crawled is not queued again."
              {...bound(isUnique)}
            />
            <ParameterFields
              draft={draft.value}
              inBrowser={type === TokenType.JAVASCRIPT}
              fault={run?.fault}
              onChange={(next) => {
                draft.value = next;
              }}
            />
            <div class="row end">
              <Button kind="primary" submit disabled={urls.length === 0 || isOpen}>
                {`Push ${urls.length > 1 ? count(urls.length) : ''}`}
              </Button>
            </div>
          </Form>
        </Card>
        {run !== undefined && <PushOutcome run={run} />}
      </div>
      <Card>
        <CallPreview
          example={{
            rest: {
              method: 'GET',
              path:
                `/?token=$TOKEN&crawler=${crawler.name}&callback=true&url=${first}` +
                (timeout.value === '' ? '' : `&queue_timeout=${timeout.value}`) +
                (priority.value === '' ? '' : `&priority=${priority.value}`) +
                (item.unique === undefined ? '' : `&unique=${item.unique}`) +
                (delay.value === '' ? '' : `&delay=${delay.value}`) +
                (metadata.value === '' ? '' : `&metadata=${encodeURIComponent(metadata.value)}`) +
                queryOf(draft.value),
            },
            grpc: {
              method: 'PushService/Push',
              message: {
                crawler: crawler.name,
                url: urls[0] ?? 'https://example.com/',
                ...item,
              },
            },
          }}
        />
      </Card>
    </div>
  );
}

function PushOutcome({ run }: { readonly run: PushRun }) {
  const { done, total, state } = run;
  const onlyRefused = useSignal(false);
  const refused = done.filter(({ error }) => error !== '');
  const rows = (onlyRefused.value ? refused : done).slice(0, MAX_SHOWN);
  return (
    <Card
      flush
      title="Results of this push"
      actions={
        <>
          {(state === 'pushing' || state === 'waiting') && <Button onClick={run.stop}>Stop</Button>}
          {state === 'stopped' && (
            <Button kind="primary" onClick={run.proceed}>
              Continue
            </Button>
          )}
          <Button onClick={() => download(`push-${run.crawler}.csv`, outcomeText(run))}>
            Download CSV
          </Button>
        </>
      }
    >
      <FaultNotice fault={run.fault} />
      {state === 'waiting' && (
        <p class="card-head">The push continues by itself when the service answers.</p>
      )}
      <div class="card-head" aria-live="polite">
        <Meter label="Pushed" used={done.length} limit={total} mayBeFull />
        <span>
          {count(done.length - refused.length)} queued
          {refused.length > 0 && `, ${count(refused.length)} refused`}
        </span>
        {refused.length > 0 && <CheckField label="Only refused ones" {...bound(onlyRefused)} />}
        {done.length > MAX_SHOWN && (
          <span class="muted">The first {count(MAX_SHOWN)} are shown; the file has all.</span>
        )}
      </div>
      <DataTable
        label="Pushed URLs"
        rows={rows}
        keyOf={({ url }) => url}
        columns={[
          {
            id: 'url',
            title: 'URL',
            grow: true,
            whole: true,
            cell: ({ url }) => (
              <span class="clip" title={url}>
                {url}
              </span>
            ),
          },
          {
            id: 'outcome',
            title: 'Outcome',
            whole: true,
            cell: ({ rid, error }) =>
              error === '' ? (
                <Link to={`/find?rid=${rid}`}>{rid}</Link>
              ) : (
                <span class="bad-text">{error}</span>
              ),
          },
        ]}
      />
    </Card>
  );
}
