import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { StoredResult } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';

const unpack = promisify(gunzip);

/** Longest page, in bytes; the service's own limit is lower. */
const MAX_PAGE_BYTES = 256 * 1024 * 1024;

/** A result with its page unpacked. */
export interface CrawledPage extends Omit<StoredResult, 'body'> {
  /** The bytes of the page: UTF-8 when it is text. */
  readonly body: Uint8Array;
  /** The page as text. */
  text(): string;
}

/** Unpacks the page of a result as the service stores it. */
export async function unpackResult(result: StoredResult): Promise<CrawledPage> {
  const packed = result.body;
  const body =
    packed.byteLength === 0 ? packed : await unpack(packed, { maxOutputLength: MAX_PAGE_BYTES });
  return { ...result, body, text: () => Buffer.from(body).toString('utf8') };
}
