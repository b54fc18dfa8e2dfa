import { ADMIN, JAVASCRIPT, NORMAL } from './tokens.ts';

/** Settings of every service that a test starts, in its process or in one of its own. */
export const TEST_SETTINGS = {
  PORT: '0',
  NORMAL_TOKEN: NORMAL,
  JAVASCRIPT_TOKEN: JAVASCRIPT,
  ADMIN_TOKEN: ADMIN,
  NETWORK_ALLOW: '127.0.0.1',
  PUSH_RATE_PER_SECOND: '0',
  ACCOUNT_REQUESTS_PER_SECOND: '0',
  PROBE_INTERVAL_SECONDS: '0',
  WEBHOOK_ACK_TIMEOUT_MS: '2000',
};
