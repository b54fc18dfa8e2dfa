import { useSignal } from '@preact/signals';
import { CrawlParametersSchema } from '../../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { tokenTypes } from '../../api/session.ts';
import { useAction } from '../../api/use-action.ts';
import { duration } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { CallPreview } from '../../ui/call-preview.tsx';
import { Card } from '../../ui/card.tsx';
import { CheckField, SelectField, TextField } from '../../ui/field.tsx';
import { bound, Form } from '../../ui/form.tsx';
import { Empty, FaultNotice } from '../../ui/notice.tsx';
import { type CrawledPage, picturePath, textOf } from '../results/page-content.ts';
import { ResultView } from '../results/result-view.tsx';
import { type Draft, messageOf, queryOf } from './draft-message.ts';
import { ParameterFields } from './parameter-fields.tsx';

const EXAMPLE_URL = 'https://example.com/';

/** Crawls one URL at once and shows what came of it. */
export function CrawlPage() {
  const url = useSignal('');
  const type = useSignal<TokenType>(tokenTypes.value[0] ?? TokenType.NORMAL);
  const store = useSignal(false);
  const draft = useSignal<Draft>({});
  const result = useSignal<{ readonly page: CrawledPage; readonly tookMs: number } | undefined>(
    undefined,
  );
  const crawl = useAction(async () => {
    const startedAt = performance.now();
    const reply = await clientsFor(type.value).pushes.crawl({
      url: url.value,
      parameters: messageOf(CrawlParametersSchema, draft.value),
      ...(store.value ? { store: true } : {}),
    });
    result.value = {
      tookMs: performance.now() - startedAt,
      page: {
        ...reply,
        ...textOf(reply.body),
        rid: reply.rid ?? '',
        failure: reply.failure ?? '',
        headers: reply.originalHeaders,
        screenshot: picturePath(reply.screenshotUrl),
        screenshotFailed: reply.screenshotFailed ?? '',
      },
    };
  });
  const stored = store.value ? { store: true } : {};
  return (
    <>
      <div class="page-head">
        <div>
          <h1>Crawl one URL</h1>
          <p>Without a queue: the answer is the page. Try parameters here before pushing many.</p>
        </div>
      </div>
      <div class="split">
        <div class="stack">
          <Card>
            <Form onSubmit={() => void crawl.run()}>
              <TextField
                label="URL"
                name="url"
                type="url"
                fault={crawl.fault}
                {...bound(url)}
                placeholder={EXAMPLE_URL}
                required
                autofocus
              />
              {tokenTypes.value.length > 1 && (
                <SelectField
                  label="Crawl with"
                  value={String(type.value)}
                  options={[
                    [String(TokenType.NORMAL), 'Plain requests'],
                    [String(TokenType.JAVASCRIPT), 'A browser'],
                  ]}
                  onInput={(value) => {
                    type.value = Number(value) as TokenType;
                  }}
                />
              )}
              <ParameterFields
                draft={draft.value}
                inBrowser={type.value === TokenType.JAVASCRIPT}
                fault={crawl.fault}
                onChange={(next) => {
                  draft.value = next;
                }}
              />
              <CheckField label="Keep a copy in storage" {...bound(store)} />
              <FaultNotice fault={crawl.fault} />
              <div class="row end">
                <Button kind="primary" submit busy={crawl.busy}>
                  {crawl.busy ? 'Crawling…' : 'Crawl'}
                </Button>
              </div>
            </Form>
          </Card>
          <Card title="Result">
            <div aria-live="polite">
              {result.value === undefined ? (
                <Empty title={crawl.busy ? 'Crawling…' : 'Nothing crawled yet'}>
                  <p>The page, its status and its headers appear here.</p>
                </Empty>
              ) : (
                <div class="stack">
                  <p class="muted small">Took {duration(result.value.tookMs)}.</p>
                  <ResultView page={result.value.page} />
                </div>
              )}
            </div>
          </Card>
        </div>
        <Card>
          <CallPreview
            example={{
              rest: {
                method: 'GET',
                path: `/?token=$TOKEN&url=${encodeURIComponent(url.value || EXAMPLE_URL)}${queryOf(draft.value)}${
                  store.value ? '&store=true' : ''
                }`,
              },
              grpc: {
                method: 'PushService/Crawl',
                message: {
                  url: url.value || EXAMPLE_URL,
                  parameters: messageOf(CrawlParametersSchema, draft.value),
                  ...stored,
                },
              },
            }}
          />
        </Card>
      </div>
    </>
  );
}
