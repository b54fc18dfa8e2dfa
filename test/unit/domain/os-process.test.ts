import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs, { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { hasEnded, osProcessName } from '../../../src/domain/os-process.ts';
import { eventually } from '../../support/eventually.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;
/** Its first thread ends, another continues. */
const HALF_ENDED = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
`;

/** Lets no code of this process read a file, as the system does with files of other users. */
function hide(hidden: string): void {
  const read = fs.readFileSync;
  vi.spyOn(fs, 'readFileSync').mockImplementation(((path: string, encoding: 'utf8') => {
    if (path === hidden) throw new Error(`ENOENT: ${path}`);
    return read(path, encoding);
  }) as typeof read);
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
}

describe.skipIf(process.platform !== 'linux')('the name of a process', () => {
  test('tells that it runs, also while it is stopped, and that it has ended', async () => {
    const child = spawn('sleep', ['60']);
    const exited = once(child, 'exit');
    const name = osProcessName(child.pid) ?? '';
    expect(name).toContain(`/${child.pid}/`);
    expect(hasEnded(name)).toBe(false);
    child.kill('SIGSTOP');
    expect(hasEnded(name)).toBe(false);
    child.kill('SIGKILL');
    await exited;
    expect(hasEnded(name)).toBe(true);
    expect(osProcessName(child.pid)).toBeUndefined();
  });

  test.skipIf(!hasPython)(
    'tells that it runs until the last of its threads has ended',
    async () => {
      const child = spawn('python3', ['-c', HALF_ENDED]);
      const exited = once(child, 'exit');
      await eventually(() =>
        expect(readFileSync(`/proc/${child.pid}/stat`, 'utf8')).toContain(') Z '),
      );
      const name = osProcessName(child.pid) ?? '';
      expect(name).toContain(`/${child.pid}/`);
      expect(name).not.toContain('ended');
      expect(hasEnded(name)).toBe(false);
      child.kill('SIGKILL');
      await exited;
      expect(hasEnded(name)).toBe(true);
    },
  );

  test('tells nothing of one that /proc hides, as it does those of other users with hidepid', async () => {
    const child = spawn('sleep', ['60']);
    const exited = once(child, 'exit');
    const name = osProcessName(child.pid) ?? '';
    hide(`/proc/${child.pid}/stat`);
    expect(hasEnded(name)).toBe(false);
    child.kill('SIGKILL');
    await exited;
    expect(hasEnded(name)).toBe(true);
  });

  test('of a process that had the same id before is another', () => {
    const own = osProcessName() ?? '';
    expect(hasEnded(own)).toBe(false);
    expect(hasEnded(`${own}0`)).toBe(true);
  });

  test('of another machine, or in another form, says nothing', () => {
    const [, ...rest] = (osProcessName() ?? '').split('/');
    expect(hasEnded([crypto.randomUUID(), ...rest].join('/'))).toBe(false);
    expect(hasEnded('4194303 123456 pid:[4026531836]')).toBe(false);
    expect(hasEnded('')).toBe(false);
  });
});
