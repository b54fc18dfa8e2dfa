import { useSignal } from '@preact/signals';
import { bytes } from '../../format/numbers.ts';
import { Button } from '../../ui/button.tsx';
import { Facts } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { JsonTree } from '../../ui/json-tree.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Segments } from '../../ui/segments.tsx';
import { HtmlPreview } from './html-preview.tsx';
import type { CrawledPage } from './page-content.ts';
import { StatusBadge } from './status-badge.tsx';

type View = 'preview' | 'tree' | 'source' | 'picture' | 'headers';

/** A crawled page: what became of it, and its content in each form that makes sense. */
export function ResultView({ page }: { readonly page: CrawledPage }) {
  const json = parsedJson(page);
  const views: (readonly [View, string])[] = [];
  if (json !== undefined) views.push(['tree', 'JSON']);
  else if (isHtml(page)) views.push(['preview', 'Preview']);
  if (isText(page)) {
    views.push(['source', page.contentType.includes('markdown') ? 'Markdown' : 'Source']);
  }
  if (page.screenshot !== '') views.push(['picture', 'Screenshot']);
  if (Object.keys(page.headers).length > 0) views.push(['headers', 'Headers']);
  const picked = useSignal<View | undefined>(undefined);
  const view = views.find(([each]) => each === picked.value)?.[0] ?? views[0]?.[0];

  return (
    <div class="stack">
      <Facts
        items={[
          ['Status', <StatusBadge cbStatus={page.cbStatus} failure={page.failure} />],
          ['Site answered', page.originalStatus === 0 ? 'nothing' : page.originalStatus],
          ['Type', page.contentType || '–'],
          ['Size', bytes(page.byteCount)],
          ['Address', page.url || page.pushedUrl],
          ...(page.rid === '' ? [] : [['rid', <code>{page.rid}</code>] as const]),
          ...(page.metadata === undefined
            ? []
            : [['Metadata', <code>{page.metadata}</code>] as const]),
        ]}
      />
      {page.screenshotFailed !== '' && (
        <Notice kind="warn" title={`No screenshot: ${page.screenshotFailed}`} />
      )}
      {page.isCut && <Notice kind="warn" title="The page is long: only its beginning is shown." />}
      <div class="row spread">
        {view === undefined ? (
          <span class="muted">This is no text.</span>
        ) : (
          <Segments
            label="View"
            value={view}
            options={views}
            onPick={(next) => {
              picked.value = next;
            }}
          />
        )}
        <Button small onClick={() => download(page)}>
          Download
        </Button>
      </div>
      {view === 'preview' && <HtmlPreview html={page.text} />}
      {view === 'tree' && <JsonTree value={json} />}
      {view === 'source' && <CodeBlock label={page.contentType} text={page.text} wrap />}
      {view === 'picture' && (
        <img class="picture" src={page.screenshot} alt={`Screenshot of ${page.url}`} />
      )}
      {view === 'headers' && (
        <Facts items={Object.entries(page.headers).map(([name, value]) => [name, value])} />
      )}
    </div>
  );
}

function parsedJson({ contentType, text, isCut }: CrawledPage): unknown {
  if (isCut || !/json/i.test(contentType)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    // It only says that it is JSON: its source shows what it is.
    return undefined;
  }
}

/** Saves the page. As bytes of no type: a browser that opened it here would run its scripts. */
function download({ content, rid, contentType }: CrawledPage): void {
  const type = /(pdf|json|html|markdown)/.exec(contentType)?.[1] ?? 'txt';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
  link.download = `${rid || 'page'}.${type === 'markdown' ? 'md' : type}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function isText({ contentType }: CrawledPage): boolean {
  return contentType === '' || /text|json|xml|javascript|html/i.test(contentType);
}

function isHtml({ contentType, text }: CrawledPage): boolean {
  return /html/i.test(contentType) || /^\s*<(!doctype|html)/i.test(text);
}
