import type { AnyRequest } from '../http/node-http.ts';
import { acceptsGzip } from '../rest/accept-encoding.ts';
import type { Reply } from '../rest/reply.ts';
import { type ConsoleFile, compress, entityTag, loadConsole } from './bundle-console.ts';
import {
  PAGE_HEADERS,
  PREVIEW_DOCUMENT,
  PREVIEW_HEADERS,
  pageDocument,
} from './console-documents.ts';

/** The console's part of the one port: its page and what that loads. */
export interface ConsoleSite {
  /**
   * Whether a request is for the console, by its path without the query. A person who opens `/` in
   * a browser is led there, too; programs do not ask for HTML first, and crawls have a query.
   */
  handles(request: AnyRequest, path: string): boolean;
  /** Answers such a request. Rejects when the console cannot be bundled. */
  answer(request: AnyRequest, path: string): Promise<Reply>;
}

const ROOT = '/console';
const ASSETS = `${ROOT}/assets/`;
/** A name with the hash of its content never means anything else. */
const IMMUTABLE = 'public, max-age=31536000, immutable';

interface Site {
  readonly page: ConsoleFile;
  readonly preview: ConsoleFile;
  readonly assets: ReadonlyMap<string, ConsoleFile>;
}

/** Makes the site, which shows the version. The console is bundled at the first request and kept, about 1 MB. */
export function createConsoleSite(version: string): ConsoleSite {
  let made: Promise<Site> | undefined;
  const site = (): Promise<Site> =>
    (made ??= makeSite(version).catch((error: unknown) => {
      made = undefined;
      throw error;
    }));

  return {
    handles: (request, path) =>
      path === ROOT || path.startsWith(`${ROOT}/`) || isNavigationToStart(request),
    async answer(request, path) {
      if (path === '/') return toConsole;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return textReply(405, 'method not allowed\n', { allow: 'GET, HEAD' });
      }
      const { page, preview, assets } = await site();
      if (path.startsWith(ASSETS)) {
        const asset = assets.get(path.slice(ASSETS.length));
        if (asset === undefined) return textReply(404, 'not found\n');
        return fileReply(request, asset, {
          'cache-control': IMMUTABLE,
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin',
        });
      }
      if (path === `${ROOT}/preview`) return fileReply(request, preview, PREVIEW_HEADERS);
      return fileReply(request, page, PAGE_HEADERS);
    },
  };
}

async function makeSite(version: string): Promise<Site> {
  const bundle = await loadConsole();
  const html = 'text/html; charset=utf-8';
  return {
    page: await compress(Buffer.from(pageDocument(bundle, version)), html),
    preview: await compress(Buffer.from(PREVIEW_DOCUMENT), html),
    assets: bundle.files,
  };
}

/** Sends a file in the best encoding that the client takes, or says that it has it already. */
function fileReply(
  request: AnyRequest,
  file: ConsoleFile,
  headers: Readonly<Record<string, string>>,
): Reply {
  const etag = entityTag(file.plain);
  const all = { ...headers, etag, vary: 'accept-encoding' };
  if (request.headers['if-none-match'] === etag) return { status: 304, headers: all, body: '' };
  const accepted = request.headers['accept-encoding'] ?? '';
  const typed = { ...all, 'content-type': file.contentType };
  if (/\bbr\b(?!\s*;\s*q=0(?![.\d]))/.test(accepted)) {
    return { status: 200, headers: { ...typed, 'content-encoding': 'br' }, body: file.brotli };
  }
  if (acceptsGzip(accepted)) {
    return { status: 200, headers: { ...typed, 'content-encoding': 'gzip' }, body: file.gzip };
  }
  return { status: 200, headers: typed, body: file.plain };
}

const toConsole: Reply = {
  status: 302,
  headers: { location: ROOT, vary: 'accept', 'cache-control': 'no-store' },
  body: '',
};

function isNavigationToStart({ url, method, headers }: AnyRequest): boolean {
  return url === '/' && method === 'GET' && /^text\/html\b/.test(headers.accept ?? '');
}

function textReply(status: number, body: string, headers: Record<string, string> = {}): Reply {
  return { status, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body };
}
