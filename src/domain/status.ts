/**
 * The values of `cb_status`, and what each says here. Whether a crawl that ended with one is tried
 * again is not the value's but its reason's: {@link FAILURES}.
 */
export const CB_STATUS = {
  /** Crawled. The target's own status may be any that is a result, 404 for one. */
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
  /** The target, or the way to it, does not answer: its name, address, port or certificate. */
  unreachable: 521,
  /** The target, or the connection to it, took too long. */
  timedOut: 522,
  /** There is no page to be had at that address, however often it is tried. */
  noPage: 523,
  /** An anti-bot challenge could not be solved. */
  challenge: 525,
  /** A transient failure of another kind: the answer was broken, or its turn has not come. */
  tryAgain: 599,
  /** Waited longer than `queue_timeout`. */
  queueTimeout: 699,
} as const;

/** What the service made of an answer or a failure. */
export interface StatusVerdict {
  readonly cbStatus: number;
  /** Stable; empty when the crawl ended well. */
  readonly reason: string;
  /** Whether trying again may help; false when the crawl ended well. */
  readonly transient: boolean;
}

/**
 * Every reason a crawl fails for that is not the target's status: its `cb_status`, and whether it
 * may pass.
 */
export const FAILURES = {
  name_not_found: { cbStatus: CB_STATUS.unreachable, transient: true },
  connection_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  // Certificates are renewed, and a handshake fails when a server is overloaded or replaced.
  tls_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  proxy_failed: { cbStatus: CB_STATUS.unreachable, transient: true },
  connect_timeout: { cbStatus: CB_STATUS.timedOut, transient: true },
  timeout: { cbStatus: CB_STATUS.timedOut, transient: true },
  // Something on the way broke the answer: most often a server that is being restarted.
  protocol_error: { cbStatus: CB_STATUS.tryAgain, transient: true },
  decoding_failed: { cbStatus: CB_STATUS.tryAgain, transient: true },
  robots_unreachable: { cbStatus: CB_STATUS.tryAgain, transient: true },
  engine_failed: { cbStatus: CB_STATUS.tryAgain, transient: true },
  host_busy: { cbStatus: CB_STATUS.tryAgain, transient: true },
  // The process's memory budget had no room for the body in time.
  memory_busy: { cbStatus: CB_STATUS.tryAgain, transient: true },
  browser_busy: { cbStatus: CB_STATUS.tryAgain, transient: true },
  browser_unavailable: { cbStatus: CB_STATUS.tryAgain, transient: true },
  page_crashed: { cbStatus: CB_STATUS.tryAgain, transient: true },
  // What follows depends on the URL or on this service's configuration alone.
  address_not_allowed: { cbStatus: CB_STATUS.noPage, transient: false },
  port_not_allowed: { cbStatus: CB_STATUS.noPage, transient: false },
  invalid_url: { cbStatus: CB_STATUS.noPage, transient: false },
  // To an address that is no http or https URL.
  invalid_redirect: { cbStatus: CB_STATUS.noPage, transient: false },
  redirect_loop: { cbStatus: CB_STATUS.noPage, transient: false },
  too_many_redirects: { cbStatus: CB_STATUS.noPage, transient: false },
  body_too_large: { cbStatus: CB_STATUS.noPage, transient: false },
  too_many_encodings: { cbStatus: CB_STATUS.noPage, transient: false },
  robots_disallowed: { cbStatus: CB_STATUS.noPage, transient: false },
  proxy_not_configured: { cbStatus: CB_STATUS.noPage, transient: false },
  selector_not_found: { cbStatus: CB_STATUS.noPage, transient: false },
  // Crawling it ended the thread or the process it ran in, several times.
  crawl_crashed: { cbStatus: CB_STATUS.tryAgain, transient: false },
  queue_timeout: { cbStatus: CB_STATUS.queueTimeout, transient: false },
  // The page took more memory in the browser than it may.
  page_too_heavy: { cbStatus: CB_STATUS.noPage, transient: false },
  // A challenge is not shown to every visitor and not at all times.
  anti_bot_challenge: { cbStatus: CB_STATUS.challenge, transient: true },
  captcha: { cbStatus: CB_STATUS.targetUnavailable, transient: true },
  empty_body: { cbStatus: CB_STATUS.emptyBody, transient: true },
} as const satisfies Record<string, { readonly cbStatus: number; readonly transient: boolean }>;

/** A key of {@link FAILURES}. */
export type FailureReason = keyof typeof FAILURES;

/**
 * Reasons for which a URL was not even tried: its job is given back, and that counts neither as a
 * try nor as a failure.
 */
export const UNTRIED: ReadonlySet<string> = new Set<FailureReason>([
  'host_busy',
  'memory_busy',
  'browser_busy',
  'browser_unavailable',
]);

/**
 * Most retries for reasons that the page itself may cause each time; for others the crawler's
 * setting alone counts.
 */
export const MOST_RETRIES: Readonly<Record<string, number>> = {
  page_crashed: 5,
  engine_failed: 5,
} satisfies Partial<Record<FailureReason, number>>;

/** What is known of a target's final answer. */
export interface TargetAnswer {
  readonly status: number;
  readonly method: string;
  readonly isEmpty: boolean;
  /** The answer is not the page but an block in front of it. */
  readonly block?: 'anti_bot_challenge' | 'captcha' | undefined;
  /** `custom_success_codes`. */
  readonly successCodes?: ReadonlySet<number>;
}

const SUCCESS: StatusVerdict = { cbStatus: CB_STATUS.success, reason: '', transient: false };
/** Billed as success, together with `cb_status` 200. */
const BILLED_STATUSES: ReadonlySet<number> = new Set([200, 201, 204, 301, 302, 404, 410]);

/** Whether a crawl that ended so is billed as a success. */
export function isBilled(cbStatus: number, originalStatus: number): boolean {
  return cbStatus === CB_STATUS.success && BILLED_STATUSES.has(originalStatus);
}

/** The verdict on a crawl that failed for `reason`. */
export function verdictOnFailure(reason: FailureReason): StatusVerdict {
  return { reason, ...FAILURES[reason] };
}

/**
 * The verdict on an answer. First of all, a status among `successCodes` is a success whatever came
 * with it. Then obstacles count, then 429 and server errors, which pass. A 200 to a GET without a
 * body is `empty_body`; to POST and PUT, which must not be repeated lightly, it is an answer. All
 * else is a result: 2xx, redirects without a target, and every other 4xx, 404, 410 and 451 among
 * them.
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
 * The statuses in `custom_success_codes` (`403,429`); parts that are no status are overlooked,
 * validation is the push's.
 */
export function parseSuccessCodes(text: string | undefined): ReadonlySet<number> {
  const codes = (text ?? '').split(',').map((part) => part.trim());
  return new Set(codes.filter((code) => /^[1-9]\d\d$/.test(code)).map(Number));
}
