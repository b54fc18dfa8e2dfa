import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { ADMIN, JAVASCRIPT, type TestApp } from './app.ts';
import type { SiteRoute } from './site.ts';

/** A route that answers with a page of that HTML. */
export function htmlRoute(html: string, headers: Readonly<Record<string, string>> = {}): SiteRoute {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers });
    response.end(`<!doctype html><title>Test</title>${html}`);
  };
}

/** A route that answers with those bytes. */
export function bytesRoute(contentType: string, bytes: Buffer | string): SiteRoute {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': contentType }).end(bytes);
  };
}

/** An inline crawl with the JavaScript token (or the `token` given), as JSON. */
export async function crawlInBrowser(
  app: Pick<TestApp, 'rest'>,
  url: string,
  parameters: Readonly<Record<string, string>> = {},
) {
  const query = new URLSearchParams({ token: JAVASCRIPT, url, format: 'json', ...parameters });
  return (await app.rest('GET', `/?${query}`)).json;
}

/** The JavaScript token of a new account. */
export async function otherAccount(app: TestApp): Promise<string> {
  const name = `other-${crypto.randomUUID()}`;
  const admin = { authorization: `Bearer ${ADMIN}` };
  const { json, text } = await app.rest('POST', '/accounts', { name }, admin);
  const token = json?.javascriptToken ?? json?.javascript_token;
  if (typeof token !== 'string') throw new Error(`no account: ${text}`);
  return token;
}

/** The Chromiums that a process has started. */
export function chromiumsOf(parent: number | undefined): number[] {
  return processes()
    .filter(({ ppid, args }) => ppid === parent && /--remote-debugging-pipe/.test(args))
    .map(({ pid }) => pid);
}

/** All processes below `pid` whose command line matches. */
export function descendants(pid: number, pattern: RegExp): number[] {
  const all = processes();
  const found = new Set([pid]);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const each of all) if (found.has(each.ppid)) found.add(each.pid);
  }
  return all
    .filter((each) => found.has(each.pid) && pattern.test(each.args))
    .map((each) => each.pid);
}

/** Names and values of a process's environment; none when it has ended. */
export function environmentOf(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/environ`, 'utf8');
    return text.split('\0').filter((each) => each !== '');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

function processes(): { ppid: number; pid: number; args: string }[] {
  const lines = execFileSync('ps', ['-ww', '-eo', 'ppid=,pid=,args=']).toString().split('\n');
  return lines.flatMap((line) => {
    const [, ppid, pid, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ ppid: Number(ppid), pid: Number(pid), args }];
  });
}
