import type { Logger } from '../../src/domain/logger.ts';

/** A logger that keeps what it is given. */
export interface RecordingLogger extends Logger {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[];
}

/** Makes a {@link RecordingLogger}. */
export function createRecordingLogger(): RecordingLogger {
  const lines: RecordingLogger['lines'] = [];
  const record = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  return {
    lines,
    debug: record('debug'),
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
  };
}

/** A logger that keeps nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
