import { parseArgs } from 'node:util';
import { fileFailureText } from '../domain/file-failure.ts';
import { backupFolder } from './backup-folder.ts';
import type { BackupContent } from './check-backup.ts';
import { type FetchProgress, fetchBackup, progressText } from './fetch-backup.ts';
import { restoreBackup } from './restore-backup.ts';

const HELP = `Backs up and restores the embedded database.

  npm run backup -- FILE [--url http://127.0.0.1:8080 --admin-token TOKEN]
  npm run backup -- FILE --data-dir ./data
  npm run restore -- FILE [--data-dir ./data] [--replace]

backup    With --url the running service makes it, and it is fetched into FILE; calls continue.
          With --data-dir the service must be stopped.
          A FILE that exists is replaced once the backup is whole.
restore   Puts FILE into DATA_DIR. The service must be stopped. --replace keeps what is there next to it.

Every backup is checked as a whole when it is made, and before it is restored. The environment may
name DATA_DIR and ADMIN_TOKEN instead.
`;

let printedAt = 0;

function print(progress: FetchProgress): void {
  if (progress.step !== 'check' && Date.now() - printedAt < 1_000) return;
  printedAt = Date.now();
  process.stderr.write(`${progressText(progress)}\n`);
}

function describe({ version, ...counts }: BackupContent): string {
  const all = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  return `${all.join(', ')}; schema version ${version}`;
}

async function run(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: 'string' },
      'admin-token': { type: 'string', default: process.env['ADMIN_TOKEN'] ?? '' },
      'data-dir': { type: 'string' },
      replace: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [what, file] = positionals;
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if ((what !== 'backup' && what !== 'restore') || file === undefined || positionals.length > 2) {
    process.stderr.write(`A file is needed.\n\n${HELP}`);
    return 2;
  }
  const dataDir = values['data-dir'] ?? process.env['DATA_DIR'] ?? './data';
  if (what === 'restore') {
    const { content, kept } = await restoreBackup({ file, dataDir, replace: values.replace });
    process.stdout.write(`Restored into ${dataDir}: ${describe(content)}.\n`);
    if (kept !== undefined) process.stdout.write(`What was there is in ${kept}.\n`);
    return 0;
  }
  const { url, 'admin-token': adminToken } = values;
  const content =
    url === undefined
      ? await backupFolder({ dataDir, file, onProgress: print })
      : await fetchBackup({ url, adminToken, file, onProgress: print });
  process.stdout.write(`Backed up to ${file}: ${describe(content)}.\n`);
  return 0;
}

try {
  process.exitCode = await run();
} catch (error) {
  process.stderr.write(`${fileFailureText(error)}\n`);
  process.exitCode = 1;
}
