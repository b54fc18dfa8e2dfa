import { describe, expect, test } from 'vitest';
import type { CrawlRequest } from '../../../src/domain/job.ts';
import { createCookies } from '../../../src/engine/cookies.ts';
import { type FollowInput, follow } from '../../../src/engine/http/follow.ts';
import { HttpError, type HttpRequest, type HttpResponse } from '../../../src/net/http-client.ts';

/** A request as the site sees it. */
type SentRequest = HttpRequest & { readonly url: string };
type Respond = (request: SentRequest) => {
  readonly status?: number;
  readonly location?: string;
  readonly cookie?: string;
};

const REQUEST: CrawlRequest = {
  url: 'http://first.test/',
  method: 'GET',
  body: undefined,
  contentType: undefined,
  parameters: {},
};

/** Follows a URL at a site that answers as `respond` says; every request that was sent. */
async function followAt(respond: Respond, input: Partial<FollowInput> = {}) {
  const sent: SentRequest[] = [];
  const result = await follow({
    client: {
      async request(given): Promise<HttpResponse> {
        const request = { ...given, url: String(given.url) };
        sent.push(request);
        const { status = 200, location, cookie } = respond(request);
        const headers: [string, string][] = [];
        if (location !== undefined) headers.push(['location', location]);
        if (cookie !== undefined) headers.push(['set-cookie', cookie]);
        return { status, headers, body: new Uint8Array(0), answerMs: 0 };
      },
    },
    request: REQUEST,
    start: new URL('http://first.test/'),
    cookies: createCookies(),
    proxy: undefined,
    deadline: performance.now() + 60_000,
    maxBodyBytes: 1_000,
    signal: undefined,
    ...input,
  });
  return { sent, result };
}

function header({ headers = [] }: HttpRequest, name: string): string | undefined {
  return headers.find(([each]) => each === name)?.[1];
}

describe('a redirect', () => {
  test('to an address that was requested before with the same cookies is a loop', async () => {
    const { sent, result } = await followAt(({ url }) =>
      url.endsWith('/') ? { status: 302, location: '/next' } : { status: 302, location: '/' },
    );
    expect(sent.map(({ url }) => url)).toEqual(['http://first.test/', 'http://first.test/next']);
    expect(result).toMatchObject({ failure: 'redirect_loop', redirected: true });
  });

  test('to the same address with a new cookie is not a loop', async () => {
    const { sent, result } = await followAt((request) =>
      header(request, 'cookie') === undefined
        ? { status: 302, location: '/', cookie: 'passed=1' }
        : {},
    );
    expect(sent.map((request) => header(request, 'cookie'))).toEqual([undefined, 'passed=1']);
    expect([result.response?.status, result.failure]).toEqual([200, undefined]);
  });

  test.each([
    [301, 'POST', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [301, 'PUT', 'PUT'],
    [307, 'POST', 'POST'],
    [308, 'POST', 'POST'],
  ] as const)('with %i after %s continues with %s', async (status, method, next) => {
    const body = Buffer.from('a=1');
    const { sent } = await followAt(
      ({ url }) => (url.endsWith('/') ? { status, location: '/next' } : {}),
      { request: { ...REQUEST, method, body } },
    );
    const second = sent[1];
    expect(second?.method).toBe(next);
    expect(second?.body).toEqual(next === 'GET' ? undefined : body);
    expect(second && header(second, 'content-type')).toBe(
      next === 'GET' ? undefined : 'application/x-www-form-urlencoded',
    );
  });

  test("sends the client's headers to no other origin, nor back to the first", async () => {
    const { sent } = await followAt(
      ({ url }) => {
        if (url === 'http://first.test/') return { status: 302, location: 'http://other.test/' };
        if (url.includes('other')) return { status: 302, location: 'http://first.test/back' };
        return {};
      },
      { request: { ...REQUEST, parameters: { request_headers: 'x-key:secret|accept:text/css' } } },
    );
    expect(sent.map((request) => header(request, 'x-key'))).toEqual([
      'secret',
      undefined,
      undefined,
    ]);
    expect(sent.map((request) => header(request, 'accept'))).toEqual(Array(3).fill('text/css'));
  });

  test('gives back the memory of its body, the last response does not', async () => {
    let resets = 0;
    const room = { bytes: 0, grow: async () => undefined, reset: () => void (resets += 1) };
    await followAt(
      ({ url }) => {
        const n = Number(new URL(url).pathname.slice(1));
        return n < 3 ? { status: 302, location: `/${n + 1}` } : {};
      },
      { room },
    );
    expect(resets).toBe(3);
  });
});

describe('a chain ends', () => {
  test('with timeout, without a request, when its time is over', async () => {
    const { sent, result } = await followAt(() => ({}), { deadline: performance.now() - 1 });
    expect([sent, result.failure]).toEqual([[], 'timeout']);
  });

  test("with a failed request's reason, and with the head that had arrived", async () => {
    const head = { status: 200, headers: [['server', 'x']] as const };
    const { result } = await followAt(() => {
      throw new HttpError('body_too_large', 'too large', { head });
    });
    expect(result).toMatchObject({ failure: 'body_too_large', head, redirected: false });
  });

  test('with connection_failed when the client was closed', async () => {
    const { result } = await followAt(() => {
      throw new HttpError('aborted', 'aborted');
    });
    expect(result.failure).toBe('connection_failed');
  });

  test('with the reason of an abort', async () => {
    const aborting = new AbortController();
    const following = followAt(
      () => {
        aborting.abort(new Error('enough'));
        throw new HttpError('aborted', 'aborted');
      },
      { signal: aborting.signal },
    );
    await expect(following).rejects.toThrow('enough');
  });
});
