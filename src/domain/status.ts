/**
 * The values of `cb_status`. Whether a crawl is retried depends on the reason of its failure
 * ({@link FAILURES}), not on this value.
 */
export const CB_STATUS = {
  /** Crawled. The target's own status may be any that counts as a result, for example 404. */
  success: 200,
  /** Accepted; the result comes later. */
  accepted: 201,
  /** The target asked for fewer requests. */
  tooManyRequests: 429,
  /** The target answered with a server error other than 503. */
  targetError: 500,
  /** The target is out of service for now, or shows a captcha. */
  targetUnavailable: 503,
  /** The target's body was empty. */
  emptyBody: 520,
  /** The target cannot be reached: its name, address, port, certificate or proxy failed. */
  unreachable: 521,
  /** The target, or the connection to it, took too long. */
  timedOut: 522,
  /** There is no page at that address, however often it is tried. */
  noPage: 523,
  /** An anti-bot challenge could not be solved. */
  challenge: 525,
  /** Another transient failure: the response was broken, or the crawl could not start yet. */
  tryAgain: 599,
  /** Waited longer than `queue_timeout`. */
  queueTimeout: 699,
} as const;

/** How the service judges a response or a failure. */
export interface StatusVerdict {
  readonly cbStatus: number;
  /** Stable; empty when the crawl succeeded. */
  readonly reason: string;
  /** Whether trying again may help; false when the crawl succeeded. */
  readonly transient: boolean;
}

interface Failure {
  readonly cbStatus: number;
  readonly transient: boolean;
  /**
   * Most retries, for a failure that the page or its server may cause each time. Without it the
   * setting of the crawler alone counts.
   */
  readonly maxRetries?: number;
  /** Hours for which a URL may fail for this reason alone, unless the window of the crawler is shorter. */
  readonly windowHours?: number;
}

/** Every reason for which a crawl fails, except statuses of the target. */
export const FAILURES = {
  // Names of dead sites stay so; an hour is enough for one that was just made.
  name_not_found: { cbStatus: CB_STATUS.unreachable, transient: true, windowHours: 1 },
  // The name servers did not say whether there is such a name.
  name_lookup_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  connection_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  // Certificates are renewed, and handshakes fail when a server is overloaded or replaced.
  tls_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  // The proxy was not reached, or refused the credentials.
  proxy_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  // The proxy did not connect to the target.
  proxy_refused: { cbStatus: CB_STATUS.unreachable, transient: true },
  // No proxy of the pool may be used now.
  proxy_unavailable: { cbStatus: CB_STATUS.tryAgain, transient: true },
  // The crawler has spent on proxies what it may in a day.
  proxy_budget_used: { cbStatus: CB_STATUS.tryAgain, transient: true },
  connect_timeout: { cbStatus: CB_STATUS.timedOut, transient: true },
  timeout: { cbStatus: CB_STATUS.timedOut, transient: true },
  // A server that is being restarted breaks responses for a while. One that breaks them each time
  // does so for good: the retries take about nine minutes.
  protocol_error: { cbStatus: CB_STATUS.tryAgain, transient: true, maxRetries: 10 },
  decoding_failed: { cbStatus: CB_STATUS.tryAgain, transient: true, maxRetries: 10 },
  robots_unreachable: { cbStatus: CB_STATUS.tryAgain, transient: true },
  engine_failed: { cbStatus: CB_STATUS.tryAgain, transient: true, maxRetries: 5 },
  // The memory budget of the process had no room for the body in time.
  memory_busy: { cbStatus: CB_STATUS.tryAgain, transient: true },
  // This process or its machine had no socket, file descriptor or port left.
  no_socket: { cbStatus: CB_STATUS.tryAgain, transient: true },
  browser_busy: { cbStatus: CB_STATUS.tryAgain, transient: true },
  browser_unavailable: { cbStatus: CB_STATUS.tryAgain, transient: true },
  page_crashed: { cbStatus: CB_STATUS.tryAgain, transient: true, maxRetries: 5 },
  // The following depend only on the URL or on the configuration of this service.
  address_not_allowed: { cbStatus: CB_STATUS.noPage, transient: false },
  port_not_allowed: { cbStatus: CB_STATUS.noPage, transient: false },
  invalid_url: { cbStatus: CB_STATUS.noPage, transient: false },
  // To an address that is not an http or https URL.
  invalid_redirect: { cbStatus: CB_STATUS.noPage, transient: false },
  redirect_loop: { cbStatus: CB_STATUS.noPage, transient: false },
  too_many_redirects: { cbStatus: CB_STATUS.noPage, transient: false },
  body_too_large: { cbStatus: CB_STATUS.noPage, transient: false },
  too_many_encodings: { cbStatus: CB_STATUS.noPage, transient: false },
  robots_disallowed: { cbStatus: CB_STATUS.noPage, transient: false },
  proxy_not_configured: { cbStatus: CB_STATUS.noPage, transient: false },
  selector_not_found: { cbStatus: CB_STATUS.noPage, transient: false },
  // The script of `js_snippet` threw, or did not end.
  snippet_failed: { cbStatus: CB_STATUS.noPage, transient: false },
  // The crawl ended the thread or process that it ran in, several times.
  crawl_crashed: { cbStatus: CB_STATUS.tryAgain, transient: false },
  queue_timeout: { cbStatus: CB_STATUS.queueTimeout, transient: false },
  // The page took too much memory in the browser, or sent it more messages than it can take.
  page_too_heavy: { cbStatus: CB_STATUS.noPage, transient: false },
  // A challenge is not shown to every visitor, and not always.
  anti_bot_challenge: { cbStatus: CB_STATUS.challenge, transient: true },
  captcha: { cbStatus: CB_STATUS.targetUnavailable, transient: true },
  empty_body: { cbStatus: CB_STATUS.emptyBody, transient: true, maxRetries: 10 },
} as const satisfies Record<string, Failure>;

/** A key of {@link FAILURES}. */
export type FailureReason = keyof typeof FAILURES;

/**
 * Reasons for which a URL was not tried at all: its job returns to the queue, and that counts
 * neither as a try nor as a failure.
 */
export const UNTRIED: ReadonlySet<string> = new Set<FailureReason>([
  'memory_busy',
  'no_socket',
  'browser_busy',
  'browser_unavailable',
  'proxy_unavailable',
  'proxy_budget_used',
]);

/** Reasons for which a host counts as blocking who asks it. */
export const BLOCKS: ReadonlySet<string> = new Set<FailureReason | 'too_many_requests'>([
  'anti_bot_challenge',
  'captcha',
  'too_many_requests',
]);

/** Most retries after a failure for this reason; infinite if only the crawler's setting counts. */
export function mostRetries(reason: string): number {
  const failures: Readonly<Record<string, Failure>> = FAILURES;
  return failures[reason]?.maxRetries ?? Number.POSITIVE_INFINITY;
}

/** Hours for which a URL may fail for this reason alone; infinite if only the crawler's window counts. */
export function longestWindow(reason: string): number {
  const failures: Readonly<Record<string, Failure>> = FAILURES;
  return failures[reason]?.windowHours ?? Number.POSITIVE_INFINITY;
}

/** The final response of a target. */
export interface TargetAnswer {
  readonly status: number;
  readonly method: string;
  readonly isEmpty: boolean;
  /** Set when the response is a block page in place of the requested page. */
  readonly block?: 'anti_bot_challenge' | 'captcha' | undefined;
  /** `custom_success_codes`. */
  readonly successCodes?: ReadonlySet<number>;
}

const SUCCESS: StatusVerdict = { cbStatus: CB_STATUS.success, reason: '', transient: false };
/** Statuses of the target that are billed, together with `cb_status` 200. */
const BILLED_STATUSES: ReadonlySet<number> = new Set([200, 201, 204, 301, 302, 404, 410]);

/** Whether a crawl with these statuses is billed as a success. */
export function isBilled(cbStatus: number, originalStatus: number): boolean {
  return cbStatus === CB_STATUS.success && BILLED_STATUSES.has(originalStatus);
}

/** The verdict on a crawl that failed because of `reason`. */
export function verdictOnFailure(reason: FailureReason): StatusVerdict {
  const { cbStatus, transient } = FAILURES[reason];
  return { reason, cbStatus, transient };
}

/**
 * The verdict on a response. A status among `successCodes` is a success whatever the response
 * contains. Otherwise block pages count first, then 429 and server errors, which are transient. A
 * 200 without a body is `empty_body` for GET, but a result for POST and PUT, which should not be
 * repeated. Everything else is a result: 2xx, redirects without a target, and all other 4xx,
 * including 404, 410 and 451.
 */
export function verdictOnAnswer(answer: TargetAnswer): StatusVerdict {
  const { status, block } = answer;
  if (answer.successCodes?.has(status) === true) return SUCCESS;
  if (block !== undefined) return verdictOnFailure(block);
  if (status === 429) {
    return { cbStatus: CB_STATUS.tooManyRequests, reason: 'too_many_requests', transient: true };
  }
  if (status === 503) {
    return { cbStatus: CB_STATUS.targetUnavailable, reason: 'target_unavailable', transient: true };
  }
  if (status >= 500) {
    return { cbStatus: CB_STATUS.targetError, reason: 'target_error', transient: true };
  }
  if (status === 200 && answer.isEmpty && answer.method === 'GET') {
    return verdictOnFailure('empty_body');
  }
  return SUCCESS;
}

/**
 * Parses `custom_success_codes` (`403,429`). Invalid parts are ignored; a push with such parts was
 * refused already.
 */
export function parseSuccessCodes(text: string | undefined): ReadonlySet<number> {
  const codes = (text ?? '').split(',').map((part) => part.trim());
  return new Set(codes.filter((code) => /^[1-9]\d\d$/.test(code)).map(Number));
}
