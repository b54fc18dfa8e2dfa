import type { TokenType } from '../../domain/account.ts';
import { invalidField } from '../../domain/errors.ts';
import type { CrawlRequest } from '../../domain/job.ts';
import { parseCrawlParameters } from '../../domain/parameters.ts';
import { DIRECT, findPools, type PoolWish, type ProxyPool, TOR } from '../../domain/proxy-pools.ts';
import { parseTargetUrl } from '../../domain/target-url.ts';
import type { UsablePools } from '../crawls/usable-pools.ts';

/** A crawl as the client requests it, not validated. */
export interface CrawlInput {
  readonly url: string;
  /** GET when absent. */
  readonly method?: string | undefined;
  readonly body?: Uint8Array | undefined;
  readonly postContentType?: string | undefined;
  /** By wire name. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

const DEFAULT_CONTENT_TYPE = 'application/x-www-form-urlencoded';
const MAX_POST_BYTES = 1024 * 1024;

/** What crawls of an account may use. */
export interface CrawlOffer {
  /** The operator's, and those that the account has made. */
  readonly pools: readonly ProxyPool[];
  /** Whether clients may run scripts of their own in pages. */
  readonly allowsSnippets: boolean;
}

/** Where the offers come from. */
export interface CrawlOffers extends Pick<CrawlOffer, 'allowsSnippets'> {
  readonly usablePools: Pick<UsablePools, 'of'>;
}

/** The offer for crawls of an account; `pool` is the pool of proxies of their crawler. */
export async function offerFor(
  { usablePools, allowsSnippets }: CrawlOffers,
  accountId: string,
  inputs: readonly Pick<CrawlInput, 'parameters'>[],
  pool?: string,
): Promise<CrawlOffer> {
  const wishes = new Map<string, PoolWish>();
  for (const { parameters } of inputs) {
    const proxy = textOf(parameters['proxy']) ?? pool;
    const country = textOf(parameters['country']);
    if (proxy !== undefined || country !== undefined) {
      wishes.set(`${proxy} ${country}`, { proxy, country });
    }
  }
  return { pools: await usablePools.of(accountId, [...wishes.values()]), allowsSnippets };
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** A crawl after validation, and the host of its URL with its port, unless that is the usual one. */
export interface ParsedCrawl {
  readonly request: CrawlRequest;
  readonly host: string;
}

/**
 * Validates the crawl; `pool` is the pool of proxies of its crawler. Throws `invalid` naming the
 * parameter.
 */
export function parseCrawlRequest(
  input: CrawlInput,
  tokenType: TokenType,
  offer: CrawlOffer,
  pool?: string,
): ParsedCrawl {
  const { url, host } = parseTargetUrl(input.url);
  const parameters = parseCrawlParameters(input.parameters, tokenType);
  assertProxies({ ...parameters, proxy: parameters.proxy ?? pool }, offer);
  if (parameters.js_snippet !== undefined && !offer.allowsSnippets) {
    throw invalidField('js_snippet', 'js_snippet: the operator of this service does not allow it.');
  }
  const method = (input.method ?? 'GET').toUpperCase();
  if (method === 'GET') {
    return { request: { url, method, body: undefined, contentType: undefined, parameters }, host };
  }
  if (method !== 'POST' && method !== 'PUT') {
    throw invalidField('method', 'method must be GET, POST or PUT.');
  }
  if (tokenType === 'javascript') {
    throw invalidField('method', 'POST and PUT need the Normal token; a browser only loads pages.');
  }
  const body = input.body ?? new Uint8Array(0);
  if (body.byteLength > MAX_POST_BYTES) {
    throw invalidField('body', `The body is longer than ${MAX_POST_BYTES} bytes.`);
  }
  const given = input.postContentType ?? DEFAULT_CONTENT_TYPE;
  // READMEs of several SDKs tell their users to send the word `json`.
  const contentType = /^json$/i.test(given.trim()) ? 'application/json' : given;
  if (!/^[\w.+-]+\/[\w.+-]+(\s*;[ -~]*)?$/.test(contentType)) {
    throw invalidField('post_content_type', 'post_content_type must be a media type.');
  }
  return { request: { url, method, body, contentType, parameters }, host };
}

/** Throws `invalid` naming `field` if it names a pool that there is not. */
export function assertPool(
  field: string,
  name: string,
  { pools }: Pick<CrawlOffer, 'pools'>,
): void {
  if (name === DIRECT || pools.some((pool) => pool.name === name)) return;
  const names = pools.map((pool) => pool.name).concat(DIRECT);
  throw invalidField(field, `${field}: this service has no pool ${name}${list(names)}.`);
}

const list = (names: readonly string[]): string =>
  names.length === 0 ? '' : `; it has ${[...new Set(names)].toSorted().join(', ')}`;

/** Throws `invalid` when there are no proxies as the crawl asks for. */
export function assertProxies(wish: PoolWish, { pools }: Pick<CrawlOffer, 'pools'>): void {
  if (findPools(pools, wish) !== undefined) return;
  const { proxy, country, tor_network: tor } = wish;
  if (tor === true) {
    throw invalidField('tor_network', 'tor_network: this service has no proxy to the Tor network.');
  }
  if (proxy !== undefined) assertPool('proxy', proxy, { pools });
  const of = pools.filter(({ name }) => name !== TOR && (proxy === undefined || name === proxy));
  const countries = list(of.flatMap((pool) => pool.countries));
  const where = proxy === undefined ? 'this service' : `the pool ${proxy}`;
  throw invalidField('country', `country: ${where} has no proxy for ${country}${countries}.`);
}
