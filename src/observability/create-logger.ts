import { type DestinationStream, pino } from 'pino';
import type { AdjustableLogger } from '../domain/logger.ts';
import { errorFields } from './error-fields.ts';

/** How the log is written; `auto` is `pretty` on a terminal, else `json`. */
export type LogFormat = 'auto' | 'json' | 'pretty';

/** Whether the log has lines for people. */
export function isPretty(logFormat: LogFormat, isTerminal: boolean): boolean {
  return logFormat === 'pretty' || (logFormat === 'auto' && isTerminal);
}

/**
 * Makes the log on standard output: JSON lines, or lines for people on a terminal. It writes as it
 * goes, so that a process that dies leaves all of its lines.
 */
export async function createLogger(
  { logLevel: level, logFormat }: { readonly logLevel: string; readonly logFormat: LogFormat },
  isTerminal: boolean,
): Promise<AdjustableLogger> {
  const options = { level, serializers: { err: errorFields } };
  const logger: AdjustableLogger = isPretty(logFormat, isTerminal)
    ? pino(options, await prettyStream(isTerminal))
    : pino(options);
  return logger;
}

async function prettyStream(colorize: boolean): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty');
  const translateTime = 'SYS:HH:MM:ss.l';
  return pretty({ sync: true, colorize, translateTime, ignore: 'pid,hostname' });
}
