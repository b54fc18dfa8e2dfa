import { spawnSync } from 'node:child_process';
import { mkdir, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN, NORMAL } from '../support/app.ts';
import { startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Runs a command where `folder` is a disk of 1 MiB. */
function onSmallDisk(folder: string): string[] {
  const script = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"';
  return ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', script, folder];
}

const [unshare = '', ...how] = onSmallDisk(tmpdir());
const canMount = spawnSync(unshare, [...how, 'true']).status === 0;

test.skipIf(!canMount)(
  'a folder of backups that fills up during the copy is named, and nothing of the copy stays',
  async () => {
    await using folder = await temporaryFolder();
    const target = join(folder.path, 'backups');
    await mkdir(target);
    const env = { DATA_DIR: join(folder.path, 'data'), BACKUP_DIR: target };
    await using service = await startProcess(env, onSmallDisk(target));
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await service.rest('POST', `/crawler/${NORMAL}/store/pause`);
    const push = async (urls: number) => {
      const items = Array.from({ length: urls }, (_, n) => ({
        url: `http://127.0.0.1:1/${n}?${'x'.repeat(1_000)}`,
      }));
      const pushed = await service.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items });
      expect(pushed.status, pushed.text).toBe(200);
    };
    const backUp = () =>
      fetch(`${service.url}/backup`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN}` },
      });
    // They are in the log of the database, so that its file is still small.
    await push(1_000);
    const reply = await backUp();
    const lines = (await reply.text()).trimEnd().split('\n');
    const last = JSON.parse(lines.at(-1) ?? '') as { error: string; code: string };
    expect(last.code).toBe('backup_no_room');
    expect(last.error).toBe(
      `No space is left in ${target} for the backup; what was written of it is removed.`,
    );
    const inside = join('/proc', String(service.process.pid), 'root', target);
    expect(await readdir(inside)).toEqual([]);
    expect((await service.rest('GET', '/readyz')).status).toBe(200);

    // With a large file the database is seen to have no room before it is copied.
    for (let n = 0; n < 3; n += 1) await push(1_000);
    const again = await backUp();
    const refused = (await again.json()) as { error: string; code: string };
    expect([again.status, refused.code]).toEqual([503, 'backup_no_room']);
    expect(refused.error).toContain(target);
    expect(refused.error).toContain('BACKUP_KEEP=7 needs room for 8');
  },
);
