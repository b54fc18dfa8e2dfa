import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { addAbortSignal, finished, PassThrough, pipeline, type Readable } from 'node:stream';
import { parse as parseCsv } from 'csv-parse';
import { CliError, unreadable, usageError } from './cli-error.ts';
import { unknownName } from './push-item.ts';

/** How URLs are written: a URL or a JSON object a line, or CSV with a heading. */
export type UrlFormat = 'lines' | 'ndjson' | 'csv';

/** One URL of a source, by the names of its fields and parameters, or why it cannot be read. */
export type SourceItem = {
  /** From 1; the line or record it was in. */
  readonly line: number;
} & (
  | { readonly values: Readonly<Record<string, unknown>>; readonly fault?: undefined }
  | { readonly values?: undefined; readonly fault: string }
);

/** URLs to push, read as they are asked for. */
export interface UrlSource {
  readonly items: AsyncIterable<SourceItem>;
  /** The part of the source that was read, 0 to 1; undefined when its length is not known. */
  share(): number | undefined;
}

/** A URL has up to 8 KiB, a body 1 MiB, a third more in JSON. */
const MAX_LINE_BYTES = 2 * 1024 * 1024;

/** URLs that were given as arguments. */
export function urlsOfArguments(urls: readonly string[]): UrlSource {
  async function* read() {
    for (const [index, url] of urls.entries()) yield { line: index + 1, values: { url } };
  }
  return { items: read(), share: () => undefined };
}

/** Reads a file until the signal is aborted. Throws a CliError when it cannot. */
export async function openUrlFile(
  path: string,
  signal: AbortSignal,
  format?: UrlFormat,
): Promise<UrlSource> {
  const found = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (found.isDirectory()) throw usageError(`${path} is a folder, not a file`);
  const length = found.isFile() ? found.size : undefined;
  // A named pipe that nobody writes to blocks its stream, also against being destroyed.
  const input = addAbortSignal(signal, new PassThrough());
  pipeline(createReadStream(path), input, () => undefined);
  return readUrls(input, format ?? formatOfName(path), length);
}

/** Reads a stream, a part at a time. */
export function readUrls(input: Readable, format: UrlFormat = 'lines', length?: number): UrlSource {
  let read = 0;
  async function* counted(): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of input) {
      const bytes = Buffer.from(chunk as Uint8Array);
      read += bytes.byteLength;
      yield bytes;
    }
  }
  return {
    items: format === 'csv' ? readCsv(counted()) : readLines(counted()),
    share: () => (length === undefined || length === 0 ? undefined : Math.min(read / length, 1)),
  };
}

function formatOfName(path: string): UrlFormat {
  const extension = extname(path).toLowerCase();
  if (extension === '.csv') return 'csv';
  return ['.ndjson', '.jsonl'].includes(extension) ? 'ndjson' : 'lines';
}

/** A URL a line, or a JSON object; empty lines and those that begin with # are passed over. */
async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceItem> {
  let line = 0;
  for await (const raw of splitLines(chunks)) {
    line += 1;
    const text = (line === 1 ? raw.replace(/^\uFEFF/, '') : raw).trim();
    if (text === '' || text.startsWith('#')) continue;
    yield { line, ...(text.startsWith('{') ? parseObject(text) : { values: { url: text } }) };
  }
}

function parseObject(text: string): { values: Record<string, unknown> } | { fault: string } {
  try {
    const { parameters, ...values } = JSON.parse(text) as Record<string, unknown>;
    return { values: { ...values, ...(parameters as Record<string, unknown> | undefined) } };
  } catch {
    return { fault: 'this is not a JSON object' };
  }
}

async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      rest.push(chunk.subarray(from, end));
      yield Buffer.concat(rest).toString('utf8');
      rest = [];
      restBytes = 0;
      from = end + 1;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.byteLength - from;
    if (restBytes > MAX_LINE_BYTES)
      throw usageError(`a line is longer than ${MAX_LINE_BYTES} bytes`);
  }
  if (restBytes > 0) yield Buffer.concat(rest).toString('utf8');
}

async function* readCsv(chunks: AsyncIterable<Buffer>): AsyncGenerator<SourceItem> {
  const parser = parseCsv({
    bom: true,
    columns: (names: string[]) => {
      assertColumns(names, parser.info.lines);
      return names;
    },
    skip_empty_lines: true,
    trim: true,
    max_record_size: MAX_LINE_BYTES,
  });
  const feeding = feed(chunks, parser).catch((error: unknown) => {
    parser.destroy(error as Error);
  });
  let line = 1;
  try {
    for await (const values of parser) {
      line += 1;
      yield { line, values: values as Record<string, string> };
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw usageError(`the CSV cannot be read: ${(error as Error).message}`);
  } finally {
    parser.destroy();
    await feeding;
  }
}

/** Throws a CliError that names the line of the heading when no push has such columns. */
function assertColumns(names: readonly string[], line: number): void {
  const fault = unknownName(names) ?? (names.includes('url') ? undefined : '"url" is missing');
  if (fault !== undefined) throw usageError(`line ${line} must name the columns: ${fault}`);
}

async function feed(
  chunks: AsyncIterable<Buffer>,
  parser: ReturnType<typeof parseCsv>,
): Promise<void> {
  for await (const chunk of chunks) {
    if (parser.destroyed) return;
    if (parser.write(chunk)) continue;
    await new Promise<void>((resolve) => {
      parser.once('drain', resolve);
      finished(parser, () => resolve());
    });
  }
  parser.end();
}
