import { ScalarType } from '@bufbuild/protobuf';
import { type Signal, signal, useSignal } from '@preact/signals';
import { CrawlParametersSchema } from '../../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { PushItemSchema } from '../../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { deliveryOf } from '../../api/delivery-modes.ts';
import { onOtherAccount } from '../../api/session.ts';
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
import { changed, type Draft, fieldOf, messageOf, queryOf } from '../crawl/draft-message.ts';
import { ParameterFields } from '../crawl/parameter-fields.tsx';
import type { CrawlerView } from './crawler-page.tsx';
import { PUSH_FIELDS } from './push-fields.ts';
import { outcomeText, type PushRun, runInto, startPush, urlsOf } from './push-run.ts';

/** Items of a list that are shown. */
const MAX_SHOWN = 200;

/** What is pasted and not pushed yet, by crawler; kept while other pages are shown. */
const pasted = new Map<string, Signal<string>>();

onOtherAccount(() => pasted.clear());

/** Forgets what is pasted for a crawler, which is deleted. */
export const forgetPasted = (crawler: string): boolean => pasted.delete(crawler);

function pastedFor(crawler: string): Signal<string> {
  const text = pasted.get(crawler) ?? signal('');
  pasted.set(crawler, text);
  return text;
}

/** Puts URLs into the queue: one, or a pasted list, with progress and what became of each. */
export function PushTab({ view }: { readonly view: CrawlerView }) {
  const { crawler, type } = view;
  const text = pastedFor(crawler.name);
  const draft = useSignal<Draft>({});
  const parameters = useSignal<Draft>({});
  const isUnique = useSignal(crawler.unique ?? false);
  const run = runInto(crawler.name);
  const isOpen = run !== undefined && run.state !== 'ended';

  const urls = urlsOf(text.value);
  const { postsToCallback } = deliveryOf(crawler);
  const controls: Draft =
    isUnique.value === (crawler.unique ?? false)
      ? draft.value
      : { ...draft.value, unique: String(isUnique.value) };
  const item = {
    ...messageOf(PushItemSchema, controls),
    ...(Object.keys(parameters.value).length === 0
      ? {}
      : { parameters: messageOf(CrawlParametersSchema, parameters.value) }),
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
              {PUSH_FIELDS.filter(({ onlyDelivered }) => postsToCallback || !onlyDelivered).map(
                ({ name, ...shown }) => (
                  <TextField
                    key={name}
                    {...shown}
                    type={isNumber(name) ? 'number' : 'text'}
                    value={draft.value[name] ?? ''}
                    onInput={(value) => {
                      draft.value = changed(draft.value, name, value);
                    }}
                  />
                ),
              )}
            </div>
            <CheckField
              label="Once"
              help="A URL that waits or is being crawled is not queued again."
              {...bound(isUnique)}
            />
            <ParameterFields
              draft={parameters.value}
              inBrowser={type === TokenType.JAVASCRIPT}
              fault={run?.fault}
              onChange={(next) => {
                parameters.value = next;
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
                queryOf({ ...controls, ...parameters.value }),
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

const isNumber = (name: string): boolean => {
  const { scalar } = fieldOf(PushItemSchema, name);
  return scalar === ScalarType.INT32;
};

function PushOutcome({ run }: { readonly run: PushRun }) {
  const { done, total, state } = run;
  const onlyRefused = useSignal(false);
  const refused = done.filter(({ error }) => error !== '');
  const duplicates = done.filter(({ isDuplicate }) => isDuplicate).length;
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
          {count(done.length - refused.length - duplicates)} queued
          {duplicates > 0 && `, ${count(duplicates)} there before`}
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
            cell: ({ rid, isDuplicate, error }) =>
              error === '' ? (
                <>
                  <Link to={`/jobs/${rid}`}>{rid}</Link>
                  {isDuplicate && <span class="muted small"> there before</span>}
                </>
              ) : (
                <span class="bad-text">{error}</span>
              ),
          },
        ]}
      />
    </Card>
  );
}
