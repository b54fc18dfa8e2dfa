import { expect, test, vi } from 'vitest';
import type { Page } from '../../../src/engine/engine.ts';
import { buildResult } from '../../../src/threads/build-result.ts';
import { largeBodies } from '../../../src/threads/large-bodies.ts';

const PACKED = Uint8Array.of(1);

/** Whether a body of this length is packed apart from the crawl thread. */
async function isPackedApart(length: number, isShared: boolean): Promise<boolean> {
  using pack = vi.spyOn(largeBodies, 'pack');
  pack.mockImplementation(async ({ body }) => ({ body, packed: PACKED }));
  const page: Page = {
    cbStatus: 200,
    originalStatus: 200,
    url: 'https://example.com/',
    body: new Uint8Array(length),
    contentType: 'application/octet-stream',
    isText: false,
    headers: [],
  };
  const request = { url: page.url, method: 'GET', parameters: {} } as const;
  const spec = { kind: 'record', rid: '0123456789abcdef01234567', delivery: 'webhook' } as const;
  const { packed } = await buildResult(
    { page, request: { ...request, body: undefined, contentType: undefined }, spec },
    { accountId: 'one' },
    isShared,
  );
  return packed === PACKED;
}

test.each([
  // Bytes, whether several accounts use the thread, whether they are packed apart from it.
  [64 * 1_024, true, false],
  [64 * 1_024 + 1, true, true],
  [128 * 1_024, false, false],
  [128 * 1_024 + 1, false, true],
])(
  'a body of %i bytes, in a shared thread: %s, is packed apart: %s',
  async (length, isShared, isApart) => {
    expect(await isPackedApart(length, isShared)).toBe(isApart);
  },
);
