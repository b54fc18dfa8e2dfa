/**
 * A structured log. The first argument's fields are searchable; neither may hold a token or a URL's
 * query.
 */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
