import { Code, ConnectError } from '@connectrpc/connect';
import { computed, effect, signal } from '@preact/signals';
import type { Crawler, TokenType } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { clientsFor } from '../../api/clients.ts';
import { session, tokenTypes } from '../../api/session.ts';
import type { FeedSource } from '../../api/use-feed.ts';

const PAGE = 1_000;
/** Messages within this time are shown together, in milliseconds. */
const TOGETHER_MS = 50;

/** Crawlers by name. */
export interface CrawlerList {
  readonly crawlers: readonly Crawler[];
  /** Whether the account has more than {@link MAX_LISTED}, of which these are the first. */
  readonly isPartial: boolean;
}

/** Crawlers of an account that the service lists with their activity. */
export const MAX_LISTED = 10_000;

const NONE: CrawlerList = { crawlers: [], isPartial: false };
const known = signal(NONE);
effect(() => {
  if (session.value === undefined) known.value = NONE;
});

/** The crawlers as they were last read, for the palette and for links by name. */
export const knownCrawlers = computed(() => known.value.crawlers);

/** Whether there are crawlers that are not among the known ones. */
export const areKnownPartial = computed(() => known.value.isPartial);

/** All crawlers of the session's tokens with their activity. */
export function crawlersSource(): FeedSource<CrawlerList> {
  const types = tokenTypes.value;
  return {
    key: `crawlers ${types.join()}`,
    everyMs: 3_000,
    stream: watchCrawlers,
    poll: listCrawlers,
  };
}

/** The type of the token that a crawler is addressed with; undefined without a token. */
export async function typeOfCrawler(name: string): Promise<TokenType | undefined> {
  const found = knownCrawlers.peek().find((each) => each.name === name);
  if (found !== undefined) return found.tokenType;
  for (const type of tokenTypes.peek()) {
    try {
      await clientsFor(type).crawlers.getCrawler({ name });
      return type;
    } catch (error) {
      if (!NOT_ITS_OWN.has(ConnectError.from(error).code)) throw error;
    }
  }
  return undefined;
}

/** How a token is answered that does not address a crawler. */
const NOT_ITS_OWN = new Set([Code.NotFound, Code.PermissionDenied]);

async function listCrawlers(ended?: AbortSignal): Promise<CrawlerList> {
  const lists = await Promise.all(tokenTypes.peek().map((type) => listOfType(type, ended)));
  return rememberCrawlers({
    crawlers: sorted(lists.flatMap(({ crawlers }) => crawlers)),
    isPartial: lists.some(({ isPartial }) => isPartial),
  });
}

async function listOfType(type: TokenType, ended?: AbortSignal): Promise<CrawlerList> {
  const { crawlers } = clientsFor(type);
  const all: Crawler[] = [];
  let isPartial = false;
  let pageToken = '';
  do {
    const page = await crawlers.listCrawlers(
      { pageSize: PAGE, pageToken, withActivity: true },
      ended === undefined ? {} : { signal: ended },
    );
    all.push(...page.crawlers);
    isPartial ||= page.isPartial;
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return { crawlers: all, isPartial };
}

async function* watchCrawlers(ended: AbortSignal): AsyncGenerator<CrawlerList> {
  const types = tokenTypes.peek();
  const watched = new Map<string, Crawler>();
  let isPartial = false;
  const incomplete = new Set(types);
  const streams = types.map((type) => ({
    type,
    stream: clientsFor(type).watch.watchCrawlers({}, { signal: ended }),
  }));
  const messages = merged(streams);
  let next = messages.next();
  // A change of thousands comes in many messages, which are one change of the list.
  let due: Promise<undefined> | undefined;
  for (;;) {
    const got = await (due === undefined ? next : Promise.race([next, due]));
    if (got === undefined) {
      due = undefined;
      yield { crawlers: sorted([...watched.values()]), isPartial };
      continue;
    }
    if (got.done === true) return;
    const { type, message } = got.value;
    for (const crawler of message.crawlers) watched.set(crawler.name, crawler);
    for (const name of message.removed) watched.delete(name);
    ({ isPartial } = message);
    if (message.isComplete) incomplete.delete(type);
    if (incomplete.size === 0) due ??= afterMs(TOGETHER_MS);
    next = messages.next();
  }
}

function afterMs(ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Keeps what was read, for the palette and for links by name. */
export function rememberCrawlers(list: CrawlerList): CrawlerList {
  known.value = list;
  return list;
}

function sorted(list: readonly Crawler[]): readonly Crawler[] {
  return list.toSorted((left, right) => (left.name < right.name ? -1 : 1));
}

/** The messages of several streams as they come. Ends when one of them does. */
async function* merged<Message>(
  sources: readonly { readonly type: TokenType; readonly stream: AsyncIterable<Message> }[],
): AsyncGenerator<{ readonly type: TokenType; readonly message: Message }> {
  const readers = sources.map(({ type, stream }) => ({
    type,
    iterator: stream[Symbol.asyncIterator](),
  }));
  const next = async (at: number) => {
    const reader = readers[at];
    return { at, type: reader?.type, result: await reader?.iterator.next() };
  };
  const pending = readers.map((_, at) => next(at));
  while (pending.length > 0) {
    const { at, type, result } = await Promise.race(pending);
    if (type === undefined || result === undefined || result.done) return;
    pending[at] = next(at);
    yield { type, message: result.value };
  }
}
