import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import type { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { BatchService } from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import type { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { HostService } from '../../gen/queuedcrawler/v1/host_service_pb.ts';
import type { OperatorService } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { ProxyService } from '../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import type { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import type { StatsService } from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import type { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import type { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';

// This file and those that it imports name no type of Connect's, which need the DOM library. So a
// program for Node compiles against the package without that library and without `skipLibCheck`.

/** Values that interceptors of Connect get with a call. */
export interface CallContext {
  get<T>(key: ContextKey<T>): T;
  set<T>(key: ContextKey<T>, value: T): this;
  delete(key: ContextKey<unknown>): this;
}

interface ContextKey<T> {
  readonly id: symbol;
  readonly description: string;
  readonly defaultValue: T;
}

/** What one call may be given. */
export interface CallOptions {
  /** The deadline; none without it. */
  readonly timeoutMs?: number;
  readonly headers?: Headers | Record<string, string>;
  /** Ends the call, which throws with the code `Canceled`. */
  readonly signal?: AbortSignal;
  readonly contextValues?: CallContext;
  /** Called with the headers of the reply. */
  onHeader?(headers: Headers): void;
  /** Called with the trailers of the reply. */
  onTrailer?(trailers: Headers): void;
}

/** The methods of one service. */
export type ServiceClient<Desc extends DescService> = {
  [Name in keyof Desc['method']]: Method<Desc['method'][Name]>;
};

type Method<Desc> =
  Desc extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options?: CallOptions) => Promise<MessageShape<O>>
    : Desc extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options?: CallOptions) => AsyncIterable<MessageShape<O>>
      : Desc extends DescMethodClientStreaming<infer I, infer O>
        ? (
            requests: AsyncIterable<MessageInitShape<I>>,
            options?: CallOptions,
          ) => Promise<MessageShape<O>>
        : Desc extends DescMethodBiDiStreaming<infer I, infer O>
          ? (
              requests: AsyncIterable<MessageInitShape<I>>,
              options?: CallOptions,
            ) => AsyncIterable<MessageShape<O>>
          : never;

/** Every method of every service. */
export interface ServiceClients {
  readonly crawlers: ServiceClient<typeof CrawlerService>;
  readonly pushes: ServiceClient<typeof PushService>;
  readonly storage: ServiceClient<typeof StorageService>;
  readonly stats: ServiceClient<typeof StatsService>;
  readonly activity: ServiceClient<typeof ActivityService>;
  readonly batches: ServiceClient<typeof BatchService>;
  readonly hosts: ServiceClient<typeof HostService>;
  readonly proxies: ServiceClient<typeof ProxyService>;
  readonly watch: ServiceClient<typeof WatchService>;
  readonly accounts: ServiceClient<typeof AccountService>;
  readonly operator: ServiceClient<typeof OperatorService>;
}
