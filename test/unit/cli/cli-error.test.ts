import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { tellFailure } from '../../../src/cli/cli-error.ts';

test('texts of a service have no characters that command a terminal', () => {
  const value = { reason: 'a\u009b31m', domain: '', metadata: {} };
  const error = new ConnectError(
    '\u001b]0;title\u0007a\r\nqueued-crawler: b',
    Code.NotFound,
    undefined,
    [{ desc: ErrorInfoSchema, value }],
  );
  const { message, reason } = tellFailure(error, 'http://127.0.0.1');
  expect(message).toBe(' ]0;title a  queued-crawler: b');
  expect(reason).toBe('a 31m');
});
