import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { CdpError, createCdpConnection } from '../../../src/engine/browser/cdp-connection.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { eventually } from '../../support/eventually.ts';
import { byLength } from '../../support/length.ts';

const MIB = 1024 * 1024;

function connection() {
  const toBrowser = new PassThrough();
  const fromBrowser = new PassThrough();
  toBrowser.resume();
  const cdp = createCdpConnection(toBrowser, fromBrowser);
  return { cdp, fromBrowser, say: (text: string) => fromBrowser.write(`${text}\0`) };
}

test('gives answers and events to whom they are for, in pieces of any size', async () => {
  const { cdp, fromBrowser } = connection();
  const crashed: string[] = [];
  cdp.listen('s', { 'Target.targetCrashed': ({ status }) => void crashed.push(status) });
  const sent = cdp.send('Target.createTarget', { url: 'about:blank' });
  const refused = cdp.send('Page.enable');
  const text = [
    '{"id":1,"result":{"targetId":"ä"}}',
    '{"method":"Target.targetCrashed","params":{"status":"other"},"sessionId":"t"}',
    '{"method":"Target.targetCrashed","params":{"status":"oom"},"sessionId":"s"}',
    '{"id":2,"error":{"message":"no"}}',
  ].join('\0');
  for (const byte of Buffer.from(`${text}\0`)) fromBrowser.write(Buffer.from([byte]));
  expect(await sent).toEqual({ targetId: 'ä' });
  await expect(refused).rejects.toThrow('Page.enable: no');
  expect(crashed).toEqual(['oom']);
});

test('holds no more than a mebibyte of an event, however long a page makes it', async () => {
  const { cdp, fromBrowser, say } = connection();
  const urls: number[] = [];
  cdp.listen('', {
    'Network.requestWillBeSent': ({ requestId }) => void urls.push(Number(requestId)),
  });
  const before = process.memoryUsage().arrayBuffers;
  fromBrowser.write('{"method":"Network.requestWillBeSent","params":{"requestId":"1","url":"data:');
  const piece = Buffer.alloc(MIB, 'x');
  for (let n = 0; n < byLength(150, 500); n += 1) {
    if (!fromBrowser.write(Buffer.from(piece)))
      await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually(async () => {
    await collectGarbage();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50 * MIB);
  });
  say('"}}');
  say('{"method":"Network.requestWillBeSent","params":{"requestId":"2"}}');
  await eventually(() => expect(urls).toEqual([2]));
});

test('refuses an answer that is too long, and continues', async () => {
  const { cdp, fromBrowser, say } = connection();
  const long = cdp.send('Runtime.evaluate', { expression: 'x' });
  const failed = expect(long).rejects.toMatchObject({ kind: 'too_large' });
  fromBrowser.write('{"id":1,"result":{"value":"');
  const piece = Buffer.alloc(MIB, 'x');
  for (let n = 0; n < 70; n += 1) {
    if (!fromBrowser.write(piece)) await new Promise((resolve) => setImmediate(resolve));
  }
  await failed;
  say('"}}');
  const next = cdp.send('Page.enable');
  say('{"id":2,"result":{}}');
  expect(await next).toEqual({});
});

test('rejects what nobody answers: in time, or when the browser ends', async () => {
  const { cdp, fromBrowser } = connection();
  await expect(cdp.send('Page.enable', undefined, { timeoutMs: 10 })).rejects.toMatchObject({
    kind: 'timeout',
  });
  const pending = cdp.send('Page.enable');
  const ended = expect(pending).rejects.toBeInstanceOf(CdpError);
  fromBrowser.destroy();
  await ended;
  await cdp.closed;
  await expect(cdp.send('Page.enable')).rejects.toMatchObject({ kind: 'closed' });
});
