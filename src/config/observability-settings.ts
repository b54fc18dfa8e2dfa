import { LOG_LEVELS } from '../domain/logger.ts';
import { choice, token } from './setting-parsers.ts';

/** What the service tells of itself. */
export const observabilitySettings = {
  logLevel: {
    variable: 'LOG_LEVEL',
    fallback: 'info',
    parse: choice(...LOG_LEVELS),
    meaning: 'Least severe lines that are logged; PUT /log-level/LEVEL changes it at run time.',
  },
  logFormat: {
    variable: 'LOG_FORMAT',
    fallback: 'auto',
    parse: choice('auto', 'json', 'pretty'),
    meaning: 'auto: readable lines on a terminal, JSON elsewhere.',
  },
  logRequests: {
    variable: 'LOG_REQUESTS',
    fallback: 'all',
    parse: choice('all', 'failed', 'off'),
    meaning: 'Requests that are logged, one line each: all, those that failed, or none.',
  },
  metricsToken: {
    variable: 'METRICS_TOKEN',
    fallback: '',
    parse: token,
    meaning:
      'Token that /metrics asks for (Authorization: Bearer), beside ADMIN_TOKEN; without it /metrics asks for none.',
  },
} as const;
