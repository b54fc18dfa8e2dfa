import { createHash } from 'node:crypto';
import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import type { Clock } from '../../domain/clock.ts';
import { batchNotFound, invalidField, missingField } from '../../domain/errors.ts';
import { MAX_BULK_RIDS } from '../../domain/limits.ts';
import type { ResultPlace, ResultSelection, Store } from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import { createStreamPlaces } from '../stream-places.ts';
import { createResultTails } from './result-tails.ts';

/** Results whose places are read at a time. */
const BATCH_SIZE = 200;
/** Bytes of pages that are held for one stream, unless a single page is longer. */
const MAX_CHUNK_BYTES = 1024 * 1024;
/** Results of one chunk. */
const MAX_CHUNK = 50;
/** How often a stream without results gives a sign of life. */
const HEARTBEAT_MS = 20_000;
/** What one reply has of a batch. */
const BULK = { results: MAX_BULK_RIDS, bytes: 16 * 1024 * 1024 };
const LIMITS = { what: 'streams of results', perAccount: 10, all: 500 };
/** Results that one statement of an acknowledgement removes. */
const REMOVED_AT_ONCE = 200;

/** What a stream of results is to have. */
export interface ResultStreamRequest {
  /** The name of a crawler; empty for all results of the token. */
  readonly crawler: string;
  /** The name of a batch of the crawler; empty for all of its results. */
  readonly batch: string;
  /** Empty for the beginning. */
  readonly resumeToken: string;
  /** Whether to wait for more at the end. */
  readonly follow: boolean;
}

/** Results that are sent together; none when all have been sent. */
export interface ResultChunk {
  readonly results: readonly { readonly rid: string; readonly resumeToken: string }[];
  /** Bytes of their pages together. */
  readonly bytes: number;
  /** The place behind them. */
  readonly resumeToken: string;
}

/** The results of a token in their order, for consumers that take all of them. */
export interface ResultStreams {
  /**
   * Yields the chunks of a stream as they are asked for, without their pages. Throws `exhausted`
   * beyond the number of streams that an account may have, `not_found` for an unknown crawler, and
   * the signal's reason when it is aborted while the stream waits.
   */
  open(
    owner: TokenOwner,
    request: ResultStreamRequest,
    signal: AbortSignal,
  ): AsyncGenerator<ResultChunk, void, undefined>;
  /** Removes what a stream has sent, up to a token of it. Returns the number of removed results. */
  acknowledge(
    owner: TokenOwner,
    request: Pick<ResultStreamRequest, 'crawler' | 'batch' | 'resumeToken'>,
  ): Promise<number>;
  /** The first chunk behind the token, and whether nothing follows it. */
  next(
    owner: TokenOwner,
    request: Pick<ResultStreamRequest, 'crawler' | 'batch' | 'resumeToken'>,
  ): Promise<ResultChunk & { readonly isEnd: boolean }>;
}

/** Makes the streams of a process. */
export function createResultStreams(deps: {
  readonly store: Pick<Store, 'results' | 'batches'>;
  readonly access: Pick<CrawlerAccess, 'findRecent'>;
  readonly clock: Clock;
}): ResultStreams {
  const { store, access, clock } = deps;
  const { results } = store;
  const tails = createResultTails(results);
  const enter = createStreamPlaces(LIMITS);

  async function select(
    owner: TokenOwner,
    { crawler, batch: name }: Pick<ResultStreamRequest, 'crawler' | 'batch'>,
  ): Promise<ResultSelection> {
    const scope = scopeOf(owner);
    if (crawler === '' && name === '') return scope;
    const { crawlerId } = await access.findRecent(owner, crawler);
    if (name === '') return { ...scope, crawlerId };
    const batch = await store.batches.get(crawlerId, name, clock.now());
    if (batch === undefined) throw batchNotFound(name);
    return { ...scope, crawlerId, batchId: batch.batchId };
  }

  return {
    async *open(owner, { resumeToken, follow, ...selected }, signal) {
      const selection = await select(owner, selected);
      const tokens = resumeTokens(selection);
      let place = resumeToken === '' ? undefined : tokens.parse(resumeToken);
      using _place = enter(selection.accountId);
      // When the stream last said that all were sent, while that is so. It says so at once, so
      // that a consumer knows.
      let toldAt: number | undefined;
      while (!signal.aborted) {
        const page = await results.following(selection, place, BATCH_SIZE);
        const { series } = page.place;
        for (const chunk of chunks(page.results)) {
          const numbered = chunk.results.map((each) => tokens.numbered(series, each));
          const resume = numbered.at(-1)?.resumeToken ?? '';
          yield { results: numbered, bytes: chunk.bytes, resumeToken: resume };
        }
        place = page.place;
        if (page.results.length > 0) toldAt = undefined;
        if (page.results.length > 0 || !page.isEnd) continue;
        if (toldAt === undefined || performance.now() - toldAt >= HEARTBEAT_MS) {
          yield { results: [], bytes: 0, resumeToken: tokens.write(place) };
          toldAt = performance.now();
        }
        if (!follow) return;
        await tails.grown(selection, place, toldAt + HEARTBEAT_MS - performance.now(), signal);
      }
    },

    async next(owner, { resumeToken, ...selected }) {
      const selection = await select(owner, selected);
      const tokens = resumeTokens(selection);
      let place = resumeToken === '' ? undefined : tokens.parse(resumeToken);
      for (;;) {
        const page = await results.following(selection, place, MAX_BULK_RIDS);
        const [first, ...more] = chunks(page.results, BULK);
        if (first === undefined && !page.isEnd) {
          place = page.place;
          continue;
        }
        const { series } = page.place;
        const last = first?.results.at(-1)?.seq ?? page.place.seq;
        return {
          results: (first?.results ?? []).map((each) => tokens.numbered(series, each)),
          bytes: first?.bytes ?? 0,
          resumeToken: tokens.write({ series, seq: last }),
          isEnd: more.length === 0 && page.isEnd,
        };
      }
    },

    async acknowledge(owner, { resumeToken, ...selected }) {
      if (resumeToken === '') throw missingField('resume_token');
      const selection = await select(owner, selected);
      const place = resumeTokens(selection).parse(resumeToken);
      for (let removed = 0; ; ) {
        const more = await results.removeUpTo(selection, place, REMOVED_AT_ONCE);
        removed += more;
        if (more === 0) return removed;
      }
    },
  };
}

interface Sized {
  readonly rid: string;
  readonly seq: number;
  readonly size: number;
}

/** Parts that are small enough to be held. */
function* chunks(
  numbered: readonly Sized[],
  most = { results: MAX_CHUNK, bytes: MAX_CHUNK_BYTES },
): Generator<{ readonly results: readonly Sized[]; readonly bytes: number }> {
  let part: Sized[] = [];
  let bytes = 0;
  for (const each of numbered) {
    if (part.length === most.results || (part.length > 0 && bytes + each.size > most.bytes)) {
      yield { results: part, bytes };
      part = [];
      bytes = 0;
    }
    part.push(each);
    bytes += each.size;
  }
  if (part.length > 0) yield { results: part, bytes };
}

/**
 * The tokens of one stream. They end with a digest of what the stream selects, so that a token of
 * another account, crawler or token type is refused; those of older versions have none.
 */
function resumeTokens({ accountId, tokenType, crawlerId = '', batchId }: ResultSelection) {
  const selected = `${accountId} ${tokenType} ${batchId ?? crawlerId}`;
  const digest = createHash('sha256').update(selected).digest('hex').slice(0, 16);
  const write = ({ series, seq }: ResultPlace): string => `${series}.${seq}.${digest}`;
  return {
    write,
    numbered: (series: string, { rid, seq }: Sized) => {
      return { rid, resumeToken: write({ series, seq }) };
    },
    parse(text: string): ResultPlace {
      const [, series, seq, of = digest] =
        /^([0-9a-f]{16})\.(\d{1,15})(?:\.([0-9a-f]{16}))?$/.exec(text) ?? [];
      if (series !== undefined && of === digest) return { series, seq: Number(seq) };
      const problem =
        series === undefined ? 'a message of StreamResults' : 'a message of this stream';
      throw invalidField('resume_token', `resume_token must be one of ${problem}.`);
    },
  };
}
