import { describe, expect, test } from 'vitest';
import {
  FAILURES,
  isBilled,
  mostRetries,
  parseSuccessCodes,
  type TargetAnswer,
  verdictOnAnswer,
  verdictOnFailure,
} from '../../../src/domain/status.ts';

const GET = { method: 'GET', isEmpty: false };

describe('the verdict on an answer', () => {
  test.each([
    [200, 200, '', 'a page'],
    [201, 200, '', 'made something'],
    [204, 200, '', 'nothing to show'],
    [301, 200, '', 'a redirect without a target'],
    [304, 200, '', 'not asked for, but an answer'],
    [400, 200, '', 'a result'],
    [401, 200, '', 'a result'],
    [403, 200, '', 'a result unless it is a challenge'],
    [404, 200, '', 'a result'],
    [410, 200, '', 'a result'],
    [418, 200, '', 'a result'],
    [429, 429, 'too_many_requests', 'transient'],
    [451, 200, '', 'a result'],
    [500, 500, 'target_error', 'transient'],
    [502, 500, 'target_error', 'transient'],
    [503, 503, 'target_unavailable', 'transient'],
    [504, 500, 'target_error', 'transient'],
    [520, 500, 'target_error', 'the target sits behind a proxy of its own'],
    [599, 500, 'target_error', 'transient'],
    [999, 500, 'target_error', 'some sites answer this to robots'],
  ])('%i is %i %s: %s', (status, cbStatus, reason) => {
    expect(verdictOnAnswer({ ...GET, status })).toEqual({
      cbStatus,
      reason,
      transient: reason !== '',
    });
  });

  test.each<[answer: TargetAnswer, cbStatus: number, why: string]>([
    [{ status: 200, method: 'GET', isEmpty: true }, 520, 'empty'],
    [{ status: 204, method: 'GET', isEmpty: true }, 200, 'empty by its nature'],
    [{ status: 404, method: 'GET', isEmpty: true }, 200, 'the status says enough'],
    [{ status: 200, method: 'POST', isEmpty: true }, 200, 'must not be sent again for that'],
    [{ ...GET, status: 403, block: 'anti_bot_challenge' }, 525, 'a challenge'],
    [{ ...GET, status: 200, block: 'captcha' }, 503, 'a captcha'],
    [{ ...GET, status: 503, successCodes: new Set([503]) }, 200, 'wanted'],
    [{ status: 200, method: 'GET', isEmpty: true, successCodes: new Set([200]) }, 200, 'wanted'],
    [
      { ...GET, status: 403, block: 'captcha' as const, successCodes: new Set([403]) },
      200,
      'wanted, whatever it shows',
    ],
  ])('%j is %i: %s', (answer, cbStatus) => {
    expect(verdictOnAnswer(answer).cbStatus).toBe(cbStatus);
  });
});

describe('the verdict on a failure', () => {
  test.each([
    ['name_not_found', 521, true],
    ['name_lookup_failed', 521, true],
    ['connection_failed', 521, true],
    ['tls_failed', 521, true],
    ['proxy_failed', 521, true],
    ['connect_timeout', 522, true],
    ['timeout', 522, true],
    ['protocol_error', 599, true],
    ['decoding_failed', 599, true],
    ['robots_unreachable', 599, true],
    ['memory_busy', 599, true],
    ['no_socket', 599, true],
    ['crawl_crashed', 599, false],
    ['selector_not_found', 523, false],
    ['queue_timeout', 699, false],
    ['engine_failed', 599, true],
    ['address_not_allowed', 523, false],
    ['port_not_allowed', 523, false],
    ['invalid_url', 523, false],
    ['invalid_redirect', 523, false],
    ['redirect_loop', 523, false],
    ['too_many_redirects', 523, false],
    ['body_too_large', 523, false],
    ['too_many_encodings', 523, false],
    ['robots_disallowed', 523, false],
    ['proxy_not_configured', 523, false],
    ['selector_not_found', 523, false],
    ['browser_busy', 599, true],
    ['browser_unavailable', 599, true],
    ['proxy_refused', 521, true],
    ['proxy_unavailable', 599, true],
    ['proxy_budget_used', 599, true],
    ['page_too_heavy', 523, false],
    ['page_crashed', 599, true],
    ['anti_bot_challenge', 525, true],
    ['captcha', 503, true],
    ['empty_body', 520, true],
  ] as const)('%s is %i', (reason, cbStatus, transient) => {
    expect(verdictOnFailure(reason)).toEqual({ reason, cbStatus, transient });
  });

  test('the table above is whole', () => {
    expect(Object.keys(FAILURES)).toHaveLength(37);
  });
});

test.each(['protocol_error', 'decoding_failed', 'empty_body'])(
  '%s is retried ten times, because its answer may never change',
  (reason) => expect(mostRetries(reason)).toBe(10),
);

test('billed are cb_status 200 with these original statuses only', () => {
  const billed = Array.from({ length: 600 }, (_, status) => status).filter((status) =>
    isBilled(200, status),
  );
  expect(billed).toEqual([200, 201, 204, 301, 302, 404, 410]);
  expect(isBilled(520, 200)).toBe(false);
});

test.each([
  [undefined, []],
  ['', []],
  ['403, 429', [403, 429]],
  ['403,abc,99,1000,,503', [403, 503]],
])('success codes %j', (text, codes) => {
  expect([...parseSuccessCodes(text)]).toEqual(codes);
});
