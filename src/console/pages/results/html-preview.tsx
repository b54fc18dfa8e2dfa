import { useRef } from 'preact/hooks';

/**
 * A crawled page, which may be hostile. It is shown in a frame within a document of its own, whose
 * policy allows inline styles and nothing else. The frame's `sandbox` takes scripts, forms, links
 * to other places and the origin of this service away. The page requests nothing.
 */
export function HtmlPreview({ html }: { readonly html: string }) {
  const outer = useRef<HTMLIFrameElement>(null);
  return (
    <iframe
      key={html}
      ref={outer}
      class="preview"
      src="/console/preview"
      title="Preview of the page, without its scripts and pictures"
      onLoad={() => {
        const within = outer.current?.contentDocument;
        if (within === null || within === undefined) return;
        const inner = within.createElement('iframe');
        inner.setAttribute('sandbox', '');
        inner.setAttribute('title', 'The page');
        inner.srcdoc = withoutHints(html);
        within.body.replaceChildren(inner);
      }}
    />
  );
}

/**
 * Makes every `link` and `meta` an element that does nothing. No policy keeps a browser from
 * looking up and connecting to the hosts that hints name (`preconnect`, `dns-prefetch`), so a site
 * would see who looks at its page. The tag is one of the few that a head may have and that need no
 * end. The page of a `srcdoc` is escaped, so the attribute gets another name.
 */
function withoutHints(html: string): string {
  return html
    .replace(/<(?:link|meta)(?=[\s/>])/gi, '<bgsound')
    .replace(/\bsrcdoc(?=\s*=)/gi, 'data-page');
}
