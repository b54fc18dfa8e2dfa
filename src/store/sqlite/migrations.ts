import type { DatabaseSync } from 'node:sqlite';
import { databaseTooNew } from '../../domain/errors.ts';
import { hostOf } from '../../domain/target-url.ts';
import type { UpgradeStep } from '../upgrade-step.ts';
import { FIRST_VERSION, schemaSteps } from './schema-steps.ts';

/** The newest version of the schema. */
export const SCHEMA_VERSION = FIRST_VERSION + schemaSteps.length - 1;

/**
 * Migrates the database to the newest version. Throws if a newer program has written it. Calls `onStep`
 * before each step from an older version.
 */
export function migrate(
  database: DatabaseSync,
  onStep: (step: UpgradeStep) => void = () => undefined,
): void {
  const row = database.prepare('PRAGMA user_version').get();
  const version = Number(row?.user_version ?? 0);
  if (version > SCHEMA_VERSION) throw databaseTooNew(version, SCHEMA_VERSION);
  database.function('host_of', { deterministic: true }, (url) => hostOf(String(url)));
  const steps = schemaSteps
    .map((step, n) => ({
      made: FIRST_VERSION + n,
      sql: `${step}; PRAGMA user_version = ${FIRST_VERSION + n};`,
    }))
    .filter(({ made }) => made > version);
  if (version === 0) {
    // A new database is written to the disk once.
    database.exec(`BEGIN IMMEDIATE; ${steps.map(({ sql }) => sql).join('')} COMMIT`);
    return;
  }
  for (const { made, sql } of steps) {
    onStep({ version: made, of: SCHEMA_VERSION });
    database.exec(`BEGIN IMMEDIATE; ${sql} COMMIT`);
  }
}
