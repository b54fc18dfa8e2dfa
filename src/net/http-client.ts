import type { CodedBody } from '../domain/body-coding.ts';
import type { CrawlStep } from '../domain/job-try.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { Traffic } from './proxy-traffic.ts';

/** Memory for the bodies of one crawl. */
export interface Room {
  /** How many bytes may be held now. */
  readonly bytes: number;
  /** Waits until `bytes` in all may be held. Called once for each body, with its largest size. */
  grow(bytes: number): Promise<void>;
  /** Gives back everything that was granted by `grow`. */
  reset(): void;
}

/** A body that is made while it is sent, and anew each time it is read. */
export interface BodyInPieces extends AsyncIterable<Uint8Array> {
  /** Of all pieces together. */
  readonly byteLength: number;
}

/** What a request sends. */
export type RequestBody = Uint8Array | BodyInPieces;

/** A request of the service's one HTTP client. */
export interface HttpRequest {
  readonly url: string | URL;
  readonly method: string;
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: RequestBody;
  /** For the whole exchange, from the look-up of the name to the last byte. */
  readonly timeoutMs: number;
  /** Until a connection is established; default `timeoutMs`. */
  readonly connectTimeoutMs?: number;
  /**
   * From the last byte of the request to the first of the response; default `timeoutMs`. The last
   * byte of a long body counts as sent when the server's operating system has it, where that can be
   * determined (Linux).
   */
  readonly headersTimeoutMs?: number;
  /** Time for the body of a response with that head; undefined for what is left of `timeoutMs`. */
  readonly bodyTimeoutMs?: (head: NonNullable<HttpError['head']>) => number | undefined;
  /** A longer body (as it arrives, and after decoding) ends the exchange with `body_too_large`. */
  readonly maxBodyBytes: number;
  /** Cut a longer decoded body at `maxBodyBytes`, and read no further. Default false. */
  readonly cutsBody?: boolean | undefined;
  /**
   * Memory for the body: the exchange pauses until there is room. Default: only `maxBodyBytes`
   * applies.
   */
  readonly room?: Room;
  /**
   * Resolve at the headers, with an empty `body`. The connection is kept for the next request only
   * if the body is short and arrives soon. Default false.
   */
  readonly headersOnly?: boolean;
  /**
   * With `headersOnly`: reads the beginning of a body whose status is among these. The exchange then
   * resolves at `maxBytes`, at the end of the body, or after `timeoutMs`.
   */
  readonly excerpt?: {
    readonly isWanted: (status: number) => boolean;
    readonly maxBytes: number;
    readonly timeoutMs: number;
  };
  /**
   * Take what Chromium takes of a response that breaks rules of HTTP: an idempotent request is
   * repeated once, on a connection of its own, and its response repaired. A body that is cut short
   * then ends there; that of another method does so at once. Default false.
   */
  readonly lenient?: boolean;
  /** Whether the server may get it twice; default for idempotent methods. */
  readonly mayRepeat?: boolean;
  /** URL of a proxy: http, https or socks5. */
  readonly proxy?: string;
  readonly signal?: AbortSignal;
  /**
   * On whose behalf: accounts take turns at looking up names, and refusals are reported with it.
   */
  readonly claimant?: Claimant | undefined;
  /** Called when the request was written; again for a repetition. */
  readonly onSent?: () => void;
  /** Called with bytes that were sent or have arrived: of heads, without HTTP/2's compression, and of bodies as they are coded. */
  readonly onBytes?: (bytes: number) => void;
}

/** A response. Redirects are responses like any other; the caller follows them. */
export interface HttpResponse {
  readonly status: number;
  /** In the order received, names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** The body as it arrived, where it was short and decoding it again gives just `body`. */
  readonly coded?: CodedBody | undefined;
  /** Milliseconds from the last byte of the request to the first of the response. */
  readonly answerMs: number;
  /**
   * What took how long: `name`, `connect` and `tls` of a new connection, or the wait for any
   * `connection`; then `first_byte` and `body`.
   */
  readonly steps?: readonly CrawlStep[];
}

/** Why an exchange failed. */
export type HttpFailure =
  | 'address_not_allowed'
  | 'port_not_allowed'
  | 'invalid_url'
  | 'name_not_found'
  | 'name_lookup_failed'
  | 'connection_failed'
  | 'connect_timeout'
  | 'timeout'
  | 'memory_busy'
  /** This process or its machine had no socket, file descriptor or port left. */
  | 'no_socket'
  | 'tls_failed'
  | 'protocol_error'
  | 'body_too_large'
  | 'decoding_failed'
  | 'too_many_encodings'
  | 'proxy_failed'
  | 'proxy_refused'
  | 'aborted';

/** An exchange without a complete response. `code` is stable, `message` contains no secret. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: HttpFailure;
  /** The head of a response whose body could not be read. */
  readonly head: Pick<HttpResponse, 'status' | 'headers'> | undefined;
  /** What took how long; the last part is the one that failed. */
  readonly steps: readonly CrawlStep[];

  constructor(
    code: HttpFailure,
    message: string,
    options: {
      readonly cause?: unknown;
      readonly head?: HttpError['head'];
      readonly steps?: readonly CrawlStep[];
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.head = options.head;
    this.steps = options.steps ?? [];
  }
}

/**
 * Makes every request to the outside. A connection to an address that is not public is refused when
 * it is made (`address_not_allowed`), whatever name led there, unless the operator allowed it.
 */
export interface HttpClient {
  /** Throws {@link HttpError}. */
  request(request: HttpRequest): Promise<HttpResponse>;
  /** The bytes through a proxy since this was last called for it. */
  takeTraffic(proxyUrl: string): Traffic;
  /** Ends all exchanges and connections. */
  close(): Promise<void>;
}
