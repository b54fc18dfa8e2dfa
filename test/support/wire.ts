import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { CrawlerService, TokenType } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { toConnectError, withConnectErrors } from '../../src/api/errors.ts';
import { createHealthMethods } from '../../src/api/health.ts';
import { type Call, type Implementation, type Method, toMethods } from '../../src/api/method.ts';
import { createReflectionMethods } from '../../src/api/reflection.ts';
import { DomainError, invalidField } from '../../src/domain/errors.ts';
import { createEdge, type Edge, type EdgeDeps } from '../../src/edge/edge.ts';
import { createGateway, type GatewayDeps } from '../../src/rest/gateway.ts';
import { createConnectMount } from '../../src/rpc/connect-mount.ts';
import { createRecordingLogger, type RecordingLogger } from './loggers.ts';

/** The rows of a service of which only some methods matter; the others are unimplemented. */
export function partialMethodsOf<S extends DescService>(
  service: S,
  implementation: Partial<Implementation<S>>,
): Method[] {
  const missing = Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      () => {
        throw new ConnectError('not in this table', Code.Unimplemented);
      },
    ]),
  );
  return toMethods(service, { ...missing, ...implementation });
}

/** Errors that the stub's GetCrawler throws, by the name asked for. */
export const stubErrors: Readonly<Record<string, () => Error>> = {
  invalid: () => invalidField('name', 'name: 100% "ü", not a/b.'),
  unauthenticated: () => new DomainError('unauthenticated', 'invalid_token', 'No such token.'),
  forbidden: () => new DomainError('forbidden', 'wrong_token_type', 'Token of the other type.'),
  not_found: () => new DomainError('not_found', 'crawler_not_found', 'No such crawler.'),
  conflict: () => new DomainError('conflict', 'crawler_exists', 'Exists with other values.'),
  failed_precondition: () => new DomainError('failed_precondition', 'mode_fixed', 'Fixed.'),
  exhausted: () =>
    new DomainError('exhausted', 'rate_limited', 'Too fast.', {
      retryAfterMs: 1_500,
      metadata: { limit: 30, crawler: 'c' },
    }),
  unavailable: () => new DomainError('unavailable', 'database_unavailable', 'Later.'),
  internal: () => new DomainError('internal', 'broken', 'Broken.'),
  unknown: () => new Error('secret detail'),
};

/** What the stub's handlers saw. */
export interface Seen {
  readonly calls: Call[];
  /** Resolves when a handler that waits has begun. */
  waiting: PromiseWithResolvers<Call>;
  /** Ends the handlers that wait. */
  release: PromiseWithResolvers<void>;
}

/** A small table over three services of ours. */
export function createStubMethods(seen: Seen): Method[] {
  return [
    ...partialMethodsOf(CrawlerService, {
      async createCrawler(request, call) {
        seen.calls.push(call);
        const { token, name, concurrency = 20, callbackUrl } = request;
        const tokenType = token === 'js' ? TokenType.JAVASCRIPT : TokenType.NORMAL;
        const crawler = { name, concurrency, tokenType, createdAt: { seconds: 1n } };
        return {
          created: true,
          crawler: callbackUrl === undefined ? crawler : { ...crawler, callbackUrl },
        };
      },
      async getCrawler({ name }, call) {
        seen.calls.push(call);
        const error = stubErrors[name]?.();
        if (error !== undefined) throw error;
        if (name === 'wait') {
          seen.waiting.resolve(call);
          const aborted = new Promise((_, reject) => {
            const abort = () => reject(call.signal.reason as Error);
            if (call.signal.aborted) abort();
            call.signal.addEventListener('abort', abort);
          });
          await Promise.race([seen.release.promise, aborted]);
        }
        return { crawler: { name } };
      },
      async listCrawlers() {
        return { crawlers: [{ name: 'a' }, { name: 'b' }] };
      },
      async purgeCrawler() {
        return { purged: 2n ** 60n };
      },
    }),
    ...partialMethodsOf(PushService, {
      push: async ({ url }) => ({ rid: url }),
      pushBatch: async ({ items }) => ({ results: items.map(({ url }) => ({ rid: url })) }),
      async *pushStream(requests) {
        for await (const { sequence, items } of requests) {
          yield { sequence, results: items.map(({ url }) => ({ rid: url })) };
        }
      },
    }),
    ...partialMethodsOf(StorageService, {
      bulkGetResults: async ({ rids }) => ({ results: rids.map((rid) => ({ rid })) }),
      countResults: async () => ({ totalCount: 7n }),
    }),
  ];
}

/** The stub table behind an edge on a free port of 127.0.0.1. */
export interface Wire extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly edge: Edge;
  readonly seen: Seen;
  readonly logger: RecordingLogger;
}

/** Starts a {@link Wire}. */
export async function startWire(
  options: Partial<
    Pick<EdgeDeps, 'tls' | 'limits' | 'isReady' | 'metrics' | 'trustedProxies' | 'knowsToken'>
  > &
    Partial<Pick<GatewayDeps, 'adapters' | 'maxBodyBytes' | 'admission' | 'pools'>> & {
      readonly methods?: readonly Method[];
    } = {},
): Promise<Wire> {
  const { methods, adapters, maxBodyBytes = 64 * 1024, admission, pools, ...rest } = options;
  const shared = {
    ...(admission === undefined ? {} : { admission }),
    ...(pools === undefined ? {} : { pools }),
  };
  const logger = createRecordingLogger();
  const seen: Seen = {
    calls: [],
    waiting: Promise.withResolvers(),
    release: Promise.withResolvers(),
  };
  const isReady = options.isReady ?? (() => true);
  const api = withConnectErrors(methods ?? createStubMethods(seen), logger);
  const services = [CrawlerService, PushService, StorageService];
  const names = services.map((service) => service.typeName);
  const operations = withConnectErrors(
    [
      ...createHealthMethods({ services: names, isReady, watchIntervalMs: 5 }),
      ...createReflectionMethods(services),
    ],
    logger,
  );
  const edge = createEdge({
    knowsToken: () => false,
    ...rest,
    isReady,
    logger,
    rest: createGateway({
      methods: api,
      maxBodyBytes,
      ...shared,
      ...(adapters === undefined ? {} : { adapters }),
      toError: (error, place) => toConnectError(error, logger, place),
    }),
    rpc: createConnectMount({
      methods: [...api, ...operations],
      readMaxBytes: maxBodyBytes,
      ...shared,
      writeMaxBytes: 2 ** 24,
      logger,
    }),
  });
  const port = await edge.listen('127.0.0.1', 0);
  const scheme = options.tls === undefined ? 'http' : 'https';
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    edge,
    seen,
    logger,
    [Symbol.asyncDispose]: () => edge.close(0),
  };
}
