import { isUtf8 } from 'node:buffer';
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StoredResultSchema } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import type { CrawledPage } from '../client/client.ts';
import { toPlain } from '../client/message-json.ts';
import { isThere, makeFolder } from '../domain/make-folder.ts';
import { usageError } from './cli-error.ts';

/** A page in JSON: as text, or in base64 when it is not UTF-8. */
export function bodyJson(body: Uint8Array): Record<string, string> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return isUtf8(bytes)
    ? { body: bytes.toString('utf8') }
    : { body: bytes.toString('base64'), body_encoding: 'base64' };
}

/** The facts of a result, without its page. */
export function resultFacts(page: CrawledPage): Record<string, unknown> {
  const { body: _body, ...facts } = toPlain(StoredResultSchema, page);
  return { ...facts, size: page.body.byteLength };
}

/** Where the place is kept that a stream has come to. */
export interface StreamPlace {
  /** The token at which the stream continues; undefined before the first. */
  readToken(): Promise<string | undefined>;
  writeToken(token: string): Promise<void>;
}

/** A folder of pages: `RID.EXTENSION` has the page, `RID.json` its facts. */
export interface PageFolder extends StreamPlace {
  /** Writes a page, then its facts: what has facts is whole. */
  write(page: CrawledPage): Promise<void>;
  has(rid: string): Promise<boolean>;
}

const EXTENSIONS: readonly (readonly [type: RegExp, extension: string])[] = [
  [/html/, 'html'],
  [/markdown/, 'md'],
  [/json/, 'body.json'],
  [/xml/, 'xml'],
  [/pdf/, 'pdf'],
  [/jpe?g/, 'jpg'],
  [/png/, 'png'],
  [/^text\//, 'txt'],
];

/** Letters and digits alone name a file of this folder, whatever a service answers. */
const RID = /^[\da-z]{1,64}$/i;

/**
 * Opens a folder, and creates it if it does not exist. `stream` names the stream whose token is
 * kept. Its methods throw a CliError for an invalid rid.
 */
export async function openPageFolder(path: string, stream: string): Promise<PageFolder> {
  await makeFolder(path, 0o777);
  if (!(await stat(path)).isDirectory()) throw usageError(`${path} is a file, not a folder`);

  function fileOf(rid: string, extension: string): string {
    if (!RID.test(rid)) throw usageError(`${JSON.stringify(rid)} is no rid`);
    return join(path, `${rid}.${extension}`);
  }

  return {
    ...placeFile(join(path, `.resume-${encodeURIComponent(stream)}`)),
    async write(page) {
      const extension = EXTENSIONS.find(([type]) => type.test(page.contentType))?.[1] ?? 'bin';
      await writeWhole(fileOf(page.rid, extension), page.body);
      const facts = JSON.stringify(resultFacts(page), undefined, 2);
      await writeWhole(fileOf(page.rid, 'json'), `${facts}\n`);
    },
    has: async (rid) => isThere(fileOf(rid, 'json')),
  };
}

/** A file that has the place alone. */
export function placeFile(path: string): StreamPlace {
  return {
    async readToken() {
      const text = await readFile(path, 'utf8').catch(() => '');
      return text.trim() === '' ? undefined : text.trim();
    },
    writeToken: (token) => writeWhole(path, `${token}\n`),
  };
}

/** Writes a file that is there as a whole, or as it was before. */
export async function writeWhole(path: string, data: Uint8Array | string): Promise<void> {
  const fresh = `${path}.part`;
  await writeFile(fresh, data);
  await rename(fresh, path);
}
