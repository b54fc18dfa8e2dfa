/**
 * A structured log. The first argument has searchable fields. Neither argument may contain a token
 * or the query of a URL.
 */
export interface Logger {
  /** Whether lines of this level are kept; a logger without it keeps all. */
  isLevelEnabled?(level: 'debug'): boolean;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
