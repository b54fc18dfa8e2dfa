/** How calls are repeated. */
export interface RetryOptions {
  /** Calls in all, the first included. Default 7, which take some 13 seconds; 1 for no repetition. */
  readonly attempts?: number;
  /** Wait before the second call where the service names none, in milliseconds; doubles. Default 200. */
  readonly firstDelayMs?: number;
  /** Longest wait between two calls, in milliseconds. Default 10,000. */
  readonly maxDelayMs?: number;
  /** Called before each wait. */
  readonly onRetry?: (failure: unknown, delayMs: number) => void;
}
