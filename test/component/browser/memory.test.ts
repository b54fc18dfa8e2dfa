import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createCdpConnection } from '../../../src/engine/browser/cdp-connection.ts';
import { browserProcesses } from '../../../src/engine/browser/process-watch.ts';
import { runBrowser } from '../../../src/engine/browser/running-browser.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

const MIB = 1024 * 1024;
const LIMIT = 200 * MIB;

/**
 * A program with children as Chromium has them, each of which holds the given number of mebibytes.
 */
const parent = `
  const { spawn } = require('node:child_process');
  const hold = 'const held = Buffer.alloc(Number(process.argv[1]) * 1048576, 1); setInterval(() => held.length, 1000)';
  for (const [type, size] of JSON.parse(process.argv[1])) {
    spawn(process.execPath, ['-e', hold, size, '--', '--type=' + type], { stdio: 'ignore' });
  }
  setInterval(() => 0, 1000);
`;

/** Answers every command with nothing. */
function silentBrowser() {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  toBrowser.on('data', (chunk: Buffer) => {
    const { id } = JSON.parse(chunk.toString().replace('\0', '')) as { id: number };
    fromBrowser.write(`{"id":${id},"result":{}}\0`);
  });
  return createCdpConnection(toBrowser, fromBrowser);
}

test.runIf(process.platform === 'linux')(
  'a process of the browser that takes too much is ended, whatever it is for; another browser takes over',
  async () => {
    const children = [
      ['gpu-process', 300],
      ['renderer', 1],
      ['utility', 1],
    ];
    const child = spawn(process.execPath, ['-e', parent, JSON.stringify(children)]);
    await once(child, 'spawn');
    const pid = child.pid ?? 0;
    try {
      await eventually(async () => {
        const seen = await browserProcesses(pid);
        expect(seen.map(({ kind }) => kind).toSorted()).toEqual([
          'browser',
          'other',
          'other',
          'renderer',
        ]);
        expect(seen.filter(({ bytes }) => bytes > LIMIT)).toHaveLength(1);
      });
      const before = await browserProcesses(pid);
      const [heavy] = before.filter(({ bytes }) => bytes > LIMIT);
      let closed = 0;
      const browser = await runBrowser({
        chromium: {
          pid,
          cdp: silentBrowser(),
          version: '153.0.0.0',
          touch: async () => undefined,
          close: async () => {
            closed += 1;
          },
        },
        logger: silentLogger,
        recycleAfter: 100,
        maxProcessBytes: LIMIT,
        openMs: 1_000,
      });
      await eventually(() => expect(existsSync(`/proc/${heavy?.pid}/task`)).toBe(false));
      await eventually(() => expect([browser.isOpen, closed]).toEqual([false, 1]));
      const left = (await browserProcesses(pid)).map((each) => each.pid);
      for (const each of before) if (each !== heavy) expect(left).toContain(each.pid);
      await browser.close();
    } finally {
      for (const each of await browserProcesses(pid)) process.kill(each.pid, 'SIGKILL');
    }
  },
);
