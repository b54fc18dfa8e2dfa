import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { readMetric, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const DISK_MIB = 48;
const BALLAST_MIB = 38;

/** Runs a command where `folder` is a small disk of its own with a file that fills much of it. */
function onSmallDisk(folder: string, diskMib = DISK_MIB): string[] {
  const script = `mount -t tmpfs -o size=${diskMib}m tmpfs "$0" && head -c ${BALLAST_MIB}M /dev/zero > "$0/ballast" && exec "$@"`;
  return ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', script, folder];
}

const [unshare = '', ...how] = onSmallDisk(tmpdir());
const canMount = spawnSync(unshare, [...how, 'true']).status === 0;

test.skipIf(!canMount)(
  'a full disk refuses pushes with 503 and loses nothing; with room again the service continues by itself',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'queued-crawler-disk-'));
    await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
    await using site = await startSite();
    const env = { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'error', MIN_FREE_BYTES: '0' };
    await using service = await startProcess(env, onSmallDisk(folder));
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await service.rest('POST', `/crawler/${NORMAL}/store/pause`);
    const acknowledged = new Set<string>();
    let refused: number | undefined;
    const long = 'x'.repeat(1_000);
    for (let batch = 0; batch < 100 && refused === undefined; batch++) {
      const items = Array.from({ length: 200 }, (_, n) => ({
        url: `${site.url}/page/${batch}-${n}?${long}`,
      }));
      const path = `/crawler/${NORMAL}/store/push_batch`;
      const reply = await service.rest('POST', path, { items });
      if (reply.status === 200) {
        for (const { rid } of reply.json.results) acknowledged.add(rid);
      } else refused = reply.status;
    }
    expect(refused).toBe(503);
    expect(acknowledged.size).toBeGreaterThan(1_000);
    expect((await service.rest('GET', '/healthz')).status).toBe(200);

    const inside = join('/proc', String(service.process.pid), 'root', folder);
    // What smaller writes could still use.
    const rest = join(inside, 'rest');
    const { bavail, bsize } = await statfs(inside);
    await writeFile(rest, Buffer.alloc(bavail * bsize + 1, 1)).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'ENOSPC' });
    });
    // The log of the database has room that is used again.
    await eventually(async () => {
      const pause = () => service.rest('POST', `/crawler/${NORMAL}/store/pause`);
      await Promise.all(Array.from({ length: 50 }, pause));
      expect((await service.rest('GET', '/readyz')).status).toBe(503);
      expect(await readMetric(service, 'queued_crawler_database_up')).toBe(0);
    });
    // Reads are answered all the same.
    expect((await service.rest('GET', `/crawler/${NORMAL}/store`)).status).toBe(200);

    // Room again, as the operator would make it.
    await rm(rest);
    expect((await stat(join(inside, 'ballast'))).size).toBe(BALLAST_MIB * 1024 * 1024);
    await rm(join(inside, 'ballast'));
    await eventually(async () => {
      const reply = await service.rest('POST', `/crawler/${NORMAL}/store/unpause`);
      expect(reply.status).toBe(200);
    });
    expect((await service.rest('GET', '/readyz')).status).toBe(200);
    await eventually(async () => {
      const { json } = await service.rest('GET', `/crawler/${NORMAL}/stats`);
      expect(json).toMatchObject({ completed: acknowledged.size, queue: { waiting: 0 } });
    });
    const rids = await service.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000`);
    expect(new Set(rids.json)).toEqual(acknowledged);
    expect(await service.terminate()).toBe(0);
  },
);

test.skipIf(!canMount)('a start on a full disk names the database and what helps', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'queued-crawler-disk-'));
  await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  const data = join(folder, 'data');
  const started = startProcess({ DATA_DIR: data }, onSmallDisk(folder, BALLAST_MIB));
  await expect(started).rejects.toThrow(
    `${join(data, 'queued-crawler.db')}: its disk is full or has failed, free space there`,
  );
});

test.skipIf(!canMount)(
  'pushes are refused before the disk is full, crawls wait, and both continue when there is room',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'queued-crawler-disk-'));
    await using _folder = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
    await using site = await startSite();
    const env = { DATA_DIR: join(folder, 'data'), LOG_LEVEL: 'warn' };
    // With the ballast 50 MiB are free. The database and its log never take the 20 MiB above the least.
    const least = { MIN_FREE_BYTES: String(30 * 1024 * 1024) };
    const disk = onSmallDisk(folder, BALLAST_MIB + 50);
    await using service = await startProcess({ ...env, ...least }, disk);
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    await service.rest('POST', `/crawler/${NORMAL}/store/pause`);
    const push = (url: string) =>
      service.rest('POST', `/crawler/${NORMAL}/store/push_batch`, { items: [{ url }] });
    const { rid } = (await push(`${site.url}/page/1`)).json.results[0];
    const details = async () => (await service.rest('GET', `/crawler/${NORMAL}/store`)).json;
    const waitsFor = async () =>
      (await service.rest('GET', `/find_by_rid/${NORMAL}/${rid}`)).json.waits_for;
    const inside = join('/proc', String(service.process.pid), 'root', folder);
    const more = join(inside, 'more');
    await writeFile(more, Buffer.alloc(25 * 1024 * 1024, 1));
    const pushOne = () =>
      service.rest('GET', `/?token=${NORMAL}&crawler=store&url=${encodeURIComponent(site.url)}`);
    await eventually(async () => {
      const refused = await pushOne();
      expect([refused.status, refused.json.code]).toEqual([503, 'disk_almost_full']);
    });
    await service.rest('POST', `/crawler/${NORMAL}/store/unpause`);
    const stats = async () => (await service.rest('GET', `/crawler/${NORMAL}/stats`)).json;
    // A permitted crawl would have begun in this time.
    for (let n = 0; n < 5; n += 1) expect((await pushOne()).status).toBe(503);
    expect(service.output.match(/MIN_FREE_BYTES; pushes are refused/g)).toHaveLength(1);
    const held = await stats();
    expect(held).toMatchObject({ completed: 0, concurrency: { running: 0 } });
    expect(held.queue.waiting).toBeGreaterThan(0);
    const { attention } = await details();
    expect(attention).toMatchObject([{ reason: 'disk_full' }]);
    expect(attention[0].detail).toMatch(
      /^the disk of the service has about [\d.]+ MB free, less than the 31 MB of MIN_FREE_BYTES$/,
    );
    expect(attention[0].next_step).toContain('Ask the operator');
    expect(await waitsFor()).toBe('disk_full');
    const { text } = await service.rest('GET', '/metrics');
    expect(text).toContain('queued_crawler_crawlers_needing_attention{reason="disk_full"} 1');
    await rm(more);
    await eventually(async () => expect((await details()).attention).toEqual([]));
    await eventually(async () => {
      expect((await pushOne()).status).toBe(200);
      expect((await stats()).completed).toBeGreaterThan(0);
    });
  },
);
