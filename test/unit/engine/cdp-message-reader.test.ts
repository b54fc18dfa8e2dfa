import { describe, expect, test } from 'vitest';
import { createCdpMessageReader } from '../../../src/engine/browser/cdp-message-reader.ts';

const EVENT_LIMIT = 1024 * 1024;
const REPLY_LIMIT = 64 * EVENT_LIMIT;

/** What a reader reports that gets this text in pieces of `pieceBytes`. */
function read(text: string, pieceBytes = text.length) {
  const reported: unknown[] = [];
  const take = createCdpMessageReader({
    onMessage: (message) => reported.push(message),
    onReplyDropped: (id) => reported.push(['reply', id]),
    onEventDropped: (event, sessionId, head) => reported.push([event, sessionId, head.length]),
    isHandled: (event) => event !== 'Page.loadEventFired',
  });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) take(bytes.subarray(at, at + pieceBytes));
  return reported;
}

const event = (data: string, sessionId = 'ABC') =>
  `{"method":"Network.dataReceived","params":{"requestId":"1","data":"${data}"},"sessionId":"${sessionId}"}\0`;
const reply = (id: number, data: string) => `{"id":${id},"result":{"data":"${data}"}}\0`;

describe('messages', () => {
  test.each([1, 2, 7, 64, 1_000])('arrive as they are in pieces of %i bytes', (pieceBytes) => {
    const text = `${reply(1, 'ä€😀')}${event('x')}${reply(2, '')}`;
    expect(read(text, pieceBytes)).toEqual([
      { id: 1, result: { data: 'ä€😀' } },
      { method: 'Network.dataReceived', params: { requestId: '1', data: 'x' }, sessionId: 'ABC' },
      { id: 2, result: { data: '' } },
    ]);
  });

  test('that nobody handles are not parsed, and nothing is no message', () => {
    expect(read(`{"method":"Page.loadEventFired", this is not JSON\0\0${reply(1, '')}`)).toEqual([
      { id: 1, result: { data: '' } },
    ]);
  });

  test('without an end are not reported yet', () => {
    expect(read(reply(1, '').slice(0, -1))).toEqual([]);
  });
});

describe('a message that is too long', () => {
  const long = 'x'.repeat(EVENT_LIMIT);

  test.each([100, 65_536])(
    'is dropped if it is an event, with its session, in pieces of %i bytes',
    (pieceBytes) => {
      expect(read(event(long) + reply(1, ''), pieceBytes)).toEqual([
        ['Network.dataReceived', 'ABC', 256],
        { id: 1, result: { data: '' } },
      ]);
    },
  );

  test('is read if it is a reply of less than 64 MiB, and dropped beyond', () => {
    expect(read(reply(1, long), 65_536)).toEqual([{ id: 1, result: { data: long } }]);
    const longest = 'x'.repeat(REPLY_LIMIT);
    expect(read(reply(2, longest) + reply(3, ''), 1024 * 1024)).toEqual([
      ['reply', 2],
      { id: 3, result: { data: '' } },
    ]);
  });
});
