import { Code, ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { faultOf } from '../../../src/console/api/fault.ts';

test('only the network and calls without an answer are a service that does not answer', () => {
  const silent = 'The service does not answer.';
  expect(faultOf(new TypeError('Failed to fetch'))).toMatchObject({ text: silent });
  for (const code of [Code.Unknown, Code.Unavailable]) {
    const fault = faultOf(new ConnectError('HTTP 502', code));
    expect(fault).toMatchObject({ text: silent, isTransient: true });
  }
  // What the page itself finds.
  for (const error of [new RangeError('Too large.'), new Error('news: Too large.')]) {
    expect(faultOf(error)).toMatchObject({ text: error.message, advice: '', isTransient: false });
  }
});
