import { LOG_LEVELS } from '../domain/logger.ts';
import { choice, integer, text, token, url } from './setting-parsers.ts';

function headers(value: string): Readonly<Record<string, string>> {
  const pairs = value.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair, index) => {
      const [, name, text] = /^\s*([\w-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
      if (name === undefined || text === undefined) {
        // The text of the entry may be secret.
        throw new Error(`entry ${index + 1} must be name=value, such as api-key=VALUE`);
      }
      return [name.toLowerCase(), percentDecoded(text)];
    }),
  );
}

function percentDecoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    // Written without escapes.
    return value;
  }
}

function ratio(value: string): number {
  const number = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= 1)) throw new Error(`must be a number from 0 to 1, not "${value}"`);
  return number;
}

/** What the service tells of itself. */
export const observabilitySettings = {
  logLevel: {
    variable: 'LOG_LEVEL',
    fallback: 'info',
    parse: choice(...LOG_LEVELS),
    meaning: `Least severe lines that are logged: ${LOG_LEVELS.join(', ')}. PUT /log-level/LEVEL changes it at run time.`,
  },
  logFormat: {
    variable: 'LOG_FORMAT',
    fallback: 'auto',
    parse: choice('auto', 'json', 'pretty'),
    meaning:
      'pretty: readable lines; json: JSON; auto: readable lines on a terminal, JSON elsewhere. With JSON the texts for people at the start are on standard error.',
  },
  logRequests: {
    variable: 'LOG_REQUESTS',
    fallback: 'all',
    parse: choice('all', 'failed', 'off'),
    meaning:
      'Requests that are logged, one line each. all: all; failed: those that failed; off: none.',
  },
  metricsToken: {
    variable: 'METRICS_TOKEN',
    fallback: '',
    parse: token,
    meaning:
      'Token that /metrics asks for (Authorization: Bearer); ADMIN_TOKEN is accepted, too. Without it /metrics needs no token.',
  },
  metricsCrawlers: {
    variable: 'METRICS_CRAWLERS',
    fallback: '0',
    parse: integer(0, 1_000),
    meaning:
      'How many of the longest queues /metrics shows by account and crawler; 0 shows their sums alone.',
  },
  otlpEndpoint: {
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    fallback: '',
    parse: url('http', 'https'),
    meaning:
      'OpenTelemetry receiver of traces (OTLP over HTTP, such as http://localhost:4318); without it nothing is traced.',
  },
  otlpHeaders: {
    variable: 'OTEL_EXPORTER_OTLP_HEADERS',
    fallback: '',
    parse: headers,
    meaning: 'Headers of the requests to it: name=value, separated by commas.',
  },
  otelServiceName: {
    variable: 'OTEL_SERVICE_NAME',
    fallback: 'queued-crawler',
    parse: text,
    meaning: 'The name of the service in traces.',
  },
  traceRatio: {
    variable: 'OTEL_TRACES_SAMPLER_ARG',
    fallback: '1',
    parse: ratio,
    meaning:
      'The part of the traces that is kept, from 0 to 1; for a call with a token that belongs to a trace, its client decides.',
  },
} as const;
