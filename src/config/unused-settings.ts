import type { Config } from './config.ts';

/** Warnings for settings that do nothing, or leave work undone, because of the chosen database. */
export function unusedSettings({
  mongodbUri,
  role,
  backupEveryHours,
}: Pick<Config, 'mongodbUri' | 'role' | 'backupEveryHours'>): string[] {
  if (mongodbUri !== '') {
    if (backupEveryHours === 0) return [];
    return ['BACKUP_EVERY_HOURS makes no backups of MongoDB: back it up by its own means'];
  }
  if (role === 'all') return [];
  const undone = role === 'api' ? 'crawls' : 'takes URLs';
  return [
    `ROLE=${role} on the embedded database: no process ${undone}. Set MONGODB_URI, or ROLE=all`,
  ];
}
