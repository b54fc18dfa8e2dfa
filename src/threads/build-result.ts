import type { BodyCoding, CodedBody } from '../domain/body-coding.ts';
import { defined } from '../domain/defined.ts';
import { type DeliveryMode, deliveryModes } from '../domain/delivery-mode.ts';
import { discard } from '../domain/discard.ts';
import type { CrawlRequest, QueuedJob } from '../domain/job.ts';
import type { CrawlStep } from '../domain/job-try.ts';
import type { CrawlParameters } from '../domain/parameters.ts';
import type { CrawlStatus, ResultDetails } from '../domain/result.ts';
import {
  type Content,
  contentPieces,
  type ReportedResult,
  resultFields,
} from '../domain/result-fields.ts';
import type { CrawlFailure, Page } from '../engine/engine.ts';
import {
  type DocumentOutput,
  documentWork,
  type FormattedPage,
  formatPage,
} from '../engine/extract/format-page.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import { deliveryBody } from '../webhook/delivery-body.ts';
import { compressSmall, type PackedCoding } from './compress.ts';
import { largeBodies } from './large-bodies.ts';
import { withOwnMemory } from './thread-messages.ts';

/** What a page becomes: the answer to an inline crawl, or the record of a job. */
export type ResultSpec =
  | {
      readonly kind: 'inline';
      /** Set when storage keeps a copy. */
      readonly rid: string | undefined;
    }
  | (Pick<QueuedJob, 'rid' | 'againOf' | 'batch' | 'metadata' | 'climbed'> & {
      readonly kind: 'record';
      readonly delivery: DeliveryMode;
      /** See `ResultDetails.rung`. */
      readonly rung?: string | undefined;
    });

/** What a result is built from. */
export interface ResultInput {
  readonly page: Page;
  readonly request: CrawlRequest;
  readonly spec: ResultSpec;
  /** The answer of the document threads, for pages that {@link needsDocument}. */
  readonly document?: DocumentOutput | undefined;
  /** Where the page's screenshot is kept. */
  readonly screenshotUrl?: string | undefined;
}

/** A crawled page in the format its client requested. */
export interface CrawlResult extends CrawlStatus {
  /** Absent when the crawl ended well. */
  readonly failure?: CrawlFailure;
  /** What of the crawl took how long. */
  readonly steps?: readonly CrawlStep[];
  /** Media type of `body`. */
  readonly contentType: string;
  readonly isText: boolean;
  readonly details: ResultDetails;
  /** Not compressed; empty unless the spec is `inline`. */
  readonly body: Uint8Array;
  /** The bytes to store or deliver, compressed; empty for an empty page. */
  readonly packed: Uint8Array;
  /** How `packed` is compressed: with gzip where it is delivered. */
  readonly coding: BodyCoding;
  /** Media type of the content of `packed`. */
  readonly packedType: string;
  /**
   * What `packed` decompresses to, where it is delivered and not long. The signature of a delivery
   * covers it, and to decompress it takes a ninth of the time that the service spends on a page.
   */
  readonly plain?: Uint8Array;
}

const NOTHING = new Uint8Array(0);
const SHORT_BYTES = 256 * 1_024;
/**
 * Bodies up to this are compressed in half a millisecond, or three where nothing can be saved. Another
 * thread would take twice the processor time.
 */
const SMALL_BYTES = 128 * 1_024;
/**
 * The same in a thread that several accounts use. There a crawl passes some ten iterations, in each of
 * which a few bodies of another account may be compressed.
 */
const SHARED_SMALL_BYTES = 64 * 1_024;

/**
 * Builds a result, at once but for the compression of a large one, in which claimants take turns. Its
 * `body` may be the page's own. `isShared` tells whether several accounts use the thread.
 */
export async function buildResult(
  input: ResultInput,
  claimant: Claimant,
  isShared = false,
): Promise<CrawlResult> {
  const { page, request, spec, document } = input;
  const { cbStatus, originalStatus, url, failure, steps } = page;
  const formatted = formatPage(page, request.parameters, document);
  const details = resultDetails(input);
  const result = {
    cbStatus,
    originalStatus,
    url,
    ...formatted,
    ...defined({ failure, steps }),
    details,
  };
  const { kind, rid } = spec;
  if (rid === undefined) return { ...result, packed: NOTHING, coding: 'gzip', packedType: '' };
  const toContent = keptContents[kind === 'inline' ? 'storage' : spec.delivery];
  const reported = { ...result, rid, pushedUrl: request.url };
  const content = toContent(formatted, reported, request.parameters);
  const isDelivered = kind === 'record' && deliveryModes[spec.delivery].delivers;
  const asCame = codedContent(page, content, isDelivered);
  const { body, packed, plain } =
    asCame === undefined
      ? await pack(content, isDelivered ? 'gzip' : 'zstd', { claimant, isShared })
      : { body: content.body, packed: asCame, plain: content.body };
  const keepsPlain = isDelivered && plain !== undefined && plain.byteLength <= SHORT_BYTES;
  if (kind !== 'inline' && !(keepsPlain && plain.buffer === body.buffer)) discard(body);
  return {
    ...result,
    body: kind === 'inline' ? body : NOTHING,
    packed: packed.bytes,
    coding: packed.coding,
    packedType: content.contentType,
    ...(keepsPlain ? { plain: withOwnMemory(plain) } : {}),
  };
}

/** The content as the site coded it, unless a receiver of deliveries may not know the coding. */
function codedContent(page: Page, content: Content, isDelivered: boolean): CodedBody | undefined {
  const { coded } = page;
  if (coded === undefined || content.envelope !== undefined) return undefined;
  if (content.body !== page.body || (isDelivered && coded.coding !== 'gzip')) return undefined;
  return { ...coded, bytes: withOwnMemory(coded.bytes) };
}

async function pack(
  content: Content,
  coding: PackedCoding,
  { claimant, isShared }: { readonly claimant: Claimant; readonly isShared: boolean },
) {
  if (content.body.byteLength > (isShared ? SHARED_SMALL_BYTES : SMALL_BYTES)) {
    const { body, packed } = await largeBodies.pack(content, coding, claimant);
    const plain = content.envelope === undefined ? body : undefined;
    return { body, packed: { coding, bytes: packed }, plain };
  }
  const plain =
    content.envelope === undefined ? content.body : Buffer.concat([...contentPieces(content)]);
  const bytes = compressSmall(plain, coding);
  return { body: content.body, packed: { coding, bytes }, plain };
}

/** The bytes that are kept in each delivery mode, before compression. */
const keptContents: Readonly<
  Record<
    DeliveryMode,
    (
      formatted: FormattedPage,
      result: ReportedResult & { readonly rid: string; readonly details: ResultDetails },
      parameters: CrawlParameters,
    ) => Content
  >
> = {
  webhook: (formatted, result, { format = 'html', pretty }) =>
    deliveryBody({ ...result, ...formatted, format, pretty }),
  storage: storedContent,
};

/**
 * The content that storage keeps of a page: the page itself, or with `scraper` or `autoparse` an
 * envelope whose `body` is the data. Readers of stored results expect that.
 */
function storedContent(
  formatted: FormattedPage,
  result: ReportedResult & { readonly details: ResultDetails },
  { scraper, autoparse }: CrawlParameters,
): Content {
  const { contentType, body } = formatted;
  if (scraper === undefined && autoparse !== true) return { contentType, body };
  const fields = resultFields(result, result.details);
  return {
    contentType: 'application/json; charset=utf-8',
    body,
    envelope: { fields, of: 'data' },
  };
}

/**
 * Whether the page's document must be read for its result: an HTML page requested as Markdown or as
 * structured data.
 */
export function needsDocument(page: Page, request: CrawlRequest): boolean {
  return documentWork(page, request.parameters) !== undefined;
}

function resultDetails({ page, request, spec, screenshotUrl }: ResultInput): ResultDetails {
  const { failure, screenshotFailed } = page;
  const originalHeaders = requestedHeaders(page, request.parameters);
  const hasHeaders = Object.keys(originalHeaders).length > 0;
  return defined({
    failure: failure?.reason,
    screenshotUrl,
    screenshotFailed,
    crawledAt: page.crawledAt,
    ...(spec.kind === 'record'
      ? {
          againOf: spec.againOf,
          batch: spec.batch,
          metadata: spec.metadata,
          // A stored page came by none.
          ...(page.crawledAt === undefined ? { rung: spec.rung, climbed: spec.climbed } : {}),
        }
      : {}),
    originalHeaders: hasHeaders ? originalHeaders : undefined,
  });
}

/** The target's headers that the client requested, named as in `ResultDetails.originalHeaders`. */
function requestedHeaders(page: Page, parameters: CrawlParameters): Record<string, string> {
  const isCookie = ([name]: Page['headers'][number]): boolean => name === 'set-cookie';
  const headers = parameters.get_headers === true ? page.headers : [];
  const named = headers
    .filter((header) => !isCookie(header))
    .map(([name, value]) => [name.replaceAll('-', '_'), value] as const);
  const cookies = page.headers.filter(isCookie).map(([, value]) => value);
  return {
    ...Object.fromEntries(named),
    ...(parameters.get_cookies === true ? { set_cookie: cookies.join('; ') } : {}),
  };
}
