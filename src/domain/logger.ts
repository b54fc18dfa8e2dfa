/** The levels of a log, the least severe first; `silent` keeps no line. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/**
 * A structured log. The first argument has searchable fields. Neither argument may contain a token
 * or the query of a URL.
 */
export interface Logger {
  /** Whether lines of this level are kept; a logger without it keeps all. */
  isLevelEnabled?(level: 'debug' | 'info'): boolean;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A log whose level can be changed while it is in use. */
export interface AdjustableLogger extends Logger {
  /** One of {@link LOG_LEVELS}; lines below it are not kept. */
  level: string;
}
