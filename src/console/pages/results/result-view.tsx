import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { bytes } from '../../format/numbers.ts';
import { queryField } from '../../shell/route.tsx';
import { Button } from '../../ui/button.tsx';
import { Facts } from '../../ui/card.tsx';
import { CodeBlock } from '../../ui/code-block.tsx';
import { download } from '../../ui/download.ts';
import { JsonTree, parseJson } from '../../ui/json-tree.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Segments } from '../../ui/segments.tsx';
import { HtmlPreview } from './html-preview.tsx';
import { type CrawledPage, isText } from './page-content.ts';
import { StatusBadge } from './status-badge.tsx';

const VIEWS = ['', 'image', 'preview', 'tree', 'source', 'picture', 'headers'] as const;
type View = (typeof VIEWS)[number];

/** A crawled page: what became of it, and its content in each form that makes sense. */
export function ResultView({ page }: { readonly page: CrawledPage }) {
  const json = parsedJson(page);
  const views: (readonly [View, string])[] = [];
  if (/^image\//i.test(page.contentType)) views.push(['image', 'Picture']);
  if (json !== undefined) views.push(['tree', 'JSON']);
  else if (isHtml(page)) views.push(['preview', 'Preview']);
  if (isText(page.contentType)) {
    views.push(['source', page.contentType.includes('markdown') ? 'Markdown' : 'Source']);
  }
  if (page.screenshot !== '') views.push(['picture', 'Screenshot']);
  if (Object.keys(page.headers).length > 0) views.push(['headers', 'Headers']);
  // Kept for the next page that is opened.
  const picked = queryField<View>('view', VIEWS, '');
  const view = views.find(([each]) => each === picked.value)?.[0] ?? views[0]?.[0];

  return (
    <div class="stack">
      <Facts
        items={[
          ['Status', <StatusBadge cbStatus={page.cbStatus} failure={page.failure} />],
          ['Site answered', page.originalStatus === 0 ? 'nothing' : page.originalStatus],
          ['Type', page.contentType.split(';')[0] || '–'],
          ...charsetOf(page),
          ['Size', bytes(page.byteCount)],
          ...(isRedirected(page)
            ? ([
                ['Pushed', page.pushedUrl],
                ['Redirected to', page.url],
              ] as const)
            : [['Address', page.url || page.pushedUrl] as const]),
          ...(page.rid === '' ? [] : [['rid', <code>{page.rid}</code>] as const]),
          ...(page.rung === undefined ? [] : [['Rung', page.rung] as const]),
          ...(page.climbed === undefined ? [] : [['Blocked before', page.climbed] as const]),
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
          <span class="muted">There is no preview of this type.</span>
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
        <Button small onClick={() => download(fileName(page), page.content)}>
          Download
        </Button>
      </div>
      {view === 'image' && <StoredImage page={page} />}
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

function isRedirected({ url, pushedUrl }: CrawledPage): boolean {
  return url !== '' && URL.parse(url)?.href !== URL.parse(pushedUrl)?.href;
}

/** The charset of a text: that of the site, where its headers are known, and the one it is kept in. */
function charsetOf({ contentType, headers }: CrawledPage): readonly (readonly [string, string])[] {
  const named = (type: string): string | undefined =>
    /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1]?.toLowerCase();
  const kept = named(contentType);
  const header = Object.entries(headers).find(([name]) => /^content[-_]type$/i.test(name));
  const sent = named(header?.[1] ?? '') ?? kept;
  if (kept === undefined || sent === undefined) return [];
  return [['Charset', sent === kept ? kept : `${sent}, kept as ${kept}`]];
}

/**
 * As an image element shows it, which runs no scripts, whatever it holds. A picture that is opened in
 * a tab of its own may run them: a `data:` URL has an origin of its own, a `blob:` URL that of the
 * service.
 */
function StoredImage({ page: { content, contentType, url } }: { readonly page: CrawledPage }) {
  const source = useSignal('');
  useEffect(() => {
    const reader = new FileReader();
    reader.addEventListener('load', () => {
      if (typeof reader.result === 'string') source.value = reader.result;
    });
    reader.readAsDataURL(new Blob([content], { type: contentType }));
    return () => reader.abort();
  }, [content]);
  if (source.value === '') return null;
  return <img class="picture" src={source.value} alt={`Picture at ${url}`} />;
}

function parsedJson({ contentType, text, isCut }: CrawledPage): unknown {
  if (isCut || !/json/i.test(contentType)) return undefined;
  try {
    const value = parseJson(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    // The source shows it.
    return undefined;
  }
}

/** The name of the file in which a page is saved. */
function fileName({ rid, contentType }: CrawledPage): string {
  const type =
    /(pdf|json|html|markdown|png|jpeg|gif|webp|svg|avif)/.exec(contentType)?.[1] ?? 'txt';
  return `${rid || 'page'}.${type === 'markdown' ? 'md' : type}`;
}

function isHtml({ contentType, text }: CrawledPage): boolean {
  return /html/i.test(contentType) || /^\s*<(!doctype|html)/i.test(text);
}
