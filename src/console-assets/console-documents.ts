/**
 * What the console's own page may do: scripts, styles and calls of its own origin only. The styles
 * of elements are set by script, which the policy does not restrict.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/**
 * What crawled pages may do in the preview. The frame inside it inherits this policy, and its
 * `sandbox` attribute takes everything else: no script, no request, no navigation, no origin.
 */
const PREVIEW_POLICY = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  'font-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
  'sandbox allow-same-origin',
].join('; ');

const COMMON = {
  'content-type': 'text/html; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-dns-prefetch-control': 'off',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'cache-control': 'no-cache',
};

/** Headers of the console's page. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  'content-security-policy': PAGE_POLICY,
};

/** Headers of the empty document that crawled pages are shown in. */
export const PREVIEW_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON,
  'content-security-policy': PREVIEW_POLICY,
};

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3350d4"/><path d="M9 10h14M9 16h14M9 22h8" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

/** The console's page; the version is that of the service. */
export function pageDocument(
  files: { readonly script: string; readonly style: string },
  version: string,
): string {
  return `<!doctype html>
<html lang="en" data-version="${version}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>Queued Crawler</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<link rel="stylesheet" href="/console/assets/${files.style}">
<script type="module" src="/console/assets/${files.script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript. The same data is in the API: /openapi.json</noscript>
</body>
</html>
`;
}

/** The document around a crawled page; the console puts the sandboxed frame into it. */
export const PREVIEW_DOCUMENT = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Preview</title>
<style>html,body,iframe{margin:0;border:0;width:100%;height:100%;display:block;background:#fff}</style>
</head>
<body></body>
</html>
`;
