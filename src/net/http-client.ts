import type { Claimant } from '../fairness/fair-pool.ts';

/** Memory for the bodies of one crawl. */
export interface Room {
  /** How many bytes may be held now. */
  readonly bytes: number;
  /**
   * Waits until `bytes` in all may be held; asked once for each body, for all that it may come to.
   */
  grow(bytes: number): Promise<void>;
  /** Gives back what was granted beyond the beginning. */
  reset(): void;
}

/** What the one HTTP client of the service can be asked. */
export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: Uint8Array;
  /** Whole exchange, from the look-up of the name to the last byte. */
  readonly timeoutMs: number;
  /** Time for a connection to stand; default `timeoutMs`. */
  readonly connectTimeoutMs?: number;
  /**
   * Time from the last byte of the request to the first of the answer; default `timeoutMs`. The
   * last byte of a long body counts as sent when the server's system has it, where that can be
   * known (Linux).
   */
  readonly headersTimeoutMs?: number;
  /** A longer body (as it arrives, and after decoding) ends the exchange with `body_too_large`. */
  readonly maxBodyBytes: number;
  /**
   * Memory for the body: the exchange pauses until there is room. Without it only `maxBodyBytes`
   * applies.
   */
  readonly room?: Room;
  /** Decode gzip, deflate, br and zstd; default true. */
  readonly decode?: boolean;
  /**
   * Resolve at the headers with an empty `body`; the connection is kept for the next request only
   * if a short rest of the answer arrives soon. Default false.
   */
  readonly headersOnly?: boolean;
  /** URL of a proxy. */
  readonly proxy?: string;
  readonly signal?: AbortSignal;
  /** On whose behalf: names are looked up in turn by account, and refusals are told with it. */
  readonly claimant?: Claimant | undefined;
}

/** An answer. Redirects are answers like any other: following them is the caller's. */
export interface HttpResponse {
  readonly status: number;
  /** In the order received, names in lower case. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Uint8Array;
  /** Milliseconds from the last byte of the request to the first of the answer. */
  readonly answerMs: number;
}

/** Why an exchange gave no answer. */
export type HttpFailure =
  | 'address_not_allowed'
  | 'port_not_allowed'
  | 'invalid_url'
  | 'name_not_found'
  | 'connection_failed'
  | 'connect_timeout'
  | 'timeout'
  | 'memory_busy'
  | 'tls_failed'
  | 'protocol_error'
  | 'body_too_large'
  | 'decoding_failed'
  | 'too_many_encodings'
  | 'proxy_failed'
  | 'aborted';

/** An exchange that gave no whole answer; `code` is stable, `message` names no secret. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: HttpFailure;
  /** What had arrived of an answer whose body was then not to be had. */
  readonly head: Pick<HttpResponse, 'status' | 'headers'> | undefined;

  constructor(
    code: HttpFailure,
    message: string,
    options: { readonly cause?: unknown; readonly head?: HttpError['head'] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.head = options.head;
  }
}

/**
 * The only way out: every request made for a client goes through it. A connection to an address
 * that is not public is refused at connect time (`address_not_allowed`), whatever name led there,
 * unless the operator allowed it.
 */
export interface HttpClient {
  /** Throws {@link HttpError}. */
  request(request: HttpRequest): Promise<HttpResponse>;
  close(): Promise<void>;
}
