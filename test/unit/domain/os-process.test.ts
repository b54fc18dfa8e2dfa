import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { hasEnded, osProcessName } from '../../../src/domain/os-process.ts';

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
