import type { Logger } from '../domain/logger.ts';

/** A step of an upgrade. */
export interface UpgradeStep {
  /** The version that it makes, of the schema. */
  readonly version: number;
  /** The newest version. */
  readonly of: number;
}

/** Logs a step that begins. */
export function logUpgrade(logger: Pick<Logger, 'info'>, step: UpgradeStep): void {
  logger.info(
    step,
    'the database is upgraded; a large one takes minutes, and a stop waits for the step',
  );
}
