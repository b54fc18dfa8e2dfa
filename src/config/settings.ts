import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { crawlerSettings } from '../domain/crawler-settings.ts';
import { parseRetrySchedule } from '../domain/retry-schedule.ts';
import {
  ENTRY,
  parseCidr,
  parseNetworkAllow,
  refuseEntry,
  toHostname,
} from '../net/network-allow.ts';
import { parseNetworkDeny } from '../net/network-deny.ts';
import { browserSettings } from './browser-settings.ts';
import { observabilitySettings } from './observability-settings.ts';
import { parseProxies } from './parse-proxies.ts';
import { quotaSettings } from './quota-settings.ts';
import {
  baseUrl,
  type ConfigText,
  choice,
  integer,
  mailAddress,
  productName,
  text,
  token,
  tokens,
  uri,
  url,
} from './setting-parsers.ts';
import { usableMemory } from './usable-memory.ts';

export type { ConfigText };

/**
 * Largest `MAX_BODY_BYTES`: a result is one document, MongoDB takes 16 MiB, and base64 or JSON may
 * make a body a third longer.
 */
const LARGEST_BODY = 11 * 1024 * 1024;

/**
 * Hosts at which automation platforms receive webhooks: Zapier, Make and its older names, n8n
 * cloud, Pipedream, IFTTT, Power Automate old and new.
 */
const AUTOMATION_HOSTS = [
  'hooks.zapier.com',
  'make.com',
  'make.celonis.com',
  'integromat.com',
  'n8n.cloud',
  'pipedream.net',
  'maker.ifttt.com',
  'logic.azure.com',
  'environment.api.powerplatform.com',
];

/**
 * The operator's default for a crawler setting, with the bounds and the default of that setting.
 */
function crawlerDefault(name: 'concurrency' | 'maxRetries' | 'retryWindowHours') {
  const { min, max, default: fallback } = crawlerSettings[name];
  return { fallback: String(fallback), parse: integer(min, max) };
}

const MIB = 1024 * 1024;

/** Default: an eighth of the memory that the process may use, but 128 MiB to 1 GiB. */
function memoryBudget(value: string): number {
  if (value !== '') return integer(64 * MIB, 2 ** 40)(value);
  return Math.min(Math.max(Math.floor(usableMemory() / 8), 128 * MIB), 1024 * MIB);
}

function crawlThreads(value: string): number {
  if (value !== '') return integer(1, 64)(value);
  const cores = availableParallelism();
  return Math.min(Math.max(cores - 1, 2), cores, 8);
}

function entries(value: string): readonly string[] {
  return value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

function cidrs(value: string): readonly string[] {
  const kinds = [ENTRY.cidr, ENTRY.address];
  return entries(value).map((entry) => {
    const block = parseCidr(entry, kinds);
    if (block === undefined) throw refuseEntry(entry, kinds);
    return block;
  });
}

function hosts(value: string): readonly string[] {
  return entries(value).map((host) => toHostname(host, ['a host (hooks.zapier.com)']));
}

function dnsServers(value: string): readonly string[] {
  return entries(value.toLowerCase()).map((server) => {
    const [, bracketed, plain = '', port = '53'] =
      /^(?:\[([0-9a-f:]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(server) ?? [];
    const address = bracketed ?? (isIP(server) === 0 ? plain : server);
    if (isIP(address) === 0 || Number(port) < 1 || Number(port) > 65_535) {
      throw new Error(
        `"${server}" is no address of a name server (9.9.9.9, 127.0.0.1:5353, [::1]:53)`,
      );
    }
    return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  });
}

/** Every setting, in the order of docs/settings.md. The fallback is the documented default. */
export const settings = {
  host: { variable: 'HOST', fallback: '127.0.0.1', parse: text, meaning: 'Address to listen on.' },
  port: {
    variable: 'PORT',
    fallback: '8080',
    parse: integer(0, 65_535),
    meaning: 'Port for REST, gRPC, Connect, gRPC-Web and metrics; 0 picks a free one.',
  },
  role: {
    variable: 'ROLE',
    fallback: 'all',
    parse: choice('all', 'api', 'worker'),
    meaning:
      'all: answers and crawls; api: answers only; worker: crawls only (health and metrics still answer).',
  },
  dataDir: {
    variable: 'DATA_DIR',
    fallback: './data',
    parse: text,
    meaning: 'Folder of the embedded database; used when MONGODB_URI is not set.',
  },
  minFreeBytes: {
    variable: 'MIN_FREE_BYTES',
    fallback: '268435456',
    parse: integer(0, Number.MAX_SAFE_INTEGER),
    meaning:
      'Bytes that stay free on the disk of DATA_DIR: below it pushes are refused and crawls wait; 0 for no limit.',
  },
  backupDir: {
    variable: 'BACKUP_DIR',
    fallback: '',
    parse: text,
    meaning: 'Folder of the backups of the embedded database; DATA_DIR/backups when not set.',
  },
  backupEveryHours: {
    variable: 'BACKUP_EVERY_HOURS',
    fallback: '0',
    parse: integer(0, 8_760),
    meaning: 'Hours between the backups that the service makes by itself; 0 for none.',
  },
  backupKeep: {
    variable: 'BACKUP_KEEP',
    fallback: '7',
    parse: integer(1, 1_000),
    meaning:
      'How many backups are kept; older ones are removed when a new one is whole. Needs room for one more.',
  },
  mongodbUri: {
    variable: 'MONGODB_URI',
    fallback: '',
    parse: uri('mongodb', 'mongodb+srv'),
    meaning: 'MongoDB to use instead; any number of processes may share it.',
  },
  normalToken: {
    variable: 'NORMAL_TOKEN',
    fallback: '',
    parse: token,
    meaning:
      'Presets the Normal token of account default, 16 characters or more; made up and printed once otherwise.',
  },
  javascriptToken: {
    variable: 'JAVASCRIPT_TOKEN',
    fallback: '',
    parse: token,
    meaning: 'The same for the JavaScript token.',
  },
  adminToken: {
    variable: 'ADMIN_TOKEN',
    fallback: '',
    parse: token,
    meaning: 'Token of the account service; without it that service is off.',
  },
  trustedProxies: {
    variable: 'TRUSTED_PROXIES',
    fallback: '',
    parse: cidrs,
    meaning:
      'CIDRs or addresses of the proxies in front of the service, separated by commas. Only they tell the address of a client: by `Forwarded`, `X-Forwarded-For` or the PROXY protocol.',
  },
  networkAllow: {
    variable: 'NETWORK_ALLOW',
    fallback: '',
    parse: parseNetworkAllow,
    meaning:
      'CIDRs, addresses or host:port that may be reached though not public, separated by commas.',
  },
  networkDeny: {
    variable: 'NETWORK_DENY',
    fallback: '',
    parse: parseNetworkDeny,
    meaning:
      'CIDRs, addresses, names (with all below them) or host:port that are never reached, whatever else allows it, separated by commas.',
  },
  dnsServers: {
    variable: 'DNS_SERVERS',
    fallback: '',
    parse: dnsServers,
    meaning: "Name servers instead of the system's: address or address:port, separated by commas.",
  },
  pushRatePerSecond: {
    variable: 'PUSH_RATE_PER_SECOND',
    fallback: '30',
    parse: integer(0, 1_000_000),
    meaning: 'URLs a token may push per second; 0 for no limit.',
  },
  crawlerQueueLimit: {
    variable: 'CRAWLER_QUEUE_LIMIT',
    fallback: '100000',
    parse: integer(1, 100_000_000),
    meaning: 'Most waiting URLs of one crawler.',
  },
  accountQueueLimit: {
    variable: 'ACCOUNT_QUEUE_LIMIT',
    fallback: '1000000',
    parse: integer(1, 1_000_000_000),
    meaning: 'Waiting URLs of an account above which its pushes pause.',
  },
  ...quotaSettings,
  defaultConcurrency: {
    variable: 'DEFAULT_CONCURRENCY',
    ...crawlerDefault('concurrency'),
    meaning: 'Concurrency of a crawler whose creation names none.',
  },
  inlineConcurrency: {
    variable: 'INLINE_CONCURRENCY',
    fallback: '20',
    parse: integer(1, 1_000),
    meaning: 'Most inline crawls of one token at once, in each process.',
  },
  maxRetries: {
    variable: 'MAX_RETRIES',
    ...crawlerDefault('maxRetries'),
    meaning: 'Retries of a crawl that fails for a transient reason.',
  },
  retryWindowHours: {
    variable: 'RETRY_WINDOW_HOURS',
    ...crawlerDefault('retryWindowHours'),
    meaning: 'Hours from the first try in which retries are made.',
  },
  probeIntervalSeconds: {
    variable: 'PROBE_INTERVAL_SECONDS',
    fallback: '60',
    parse: integer(0, 86_400),
    meaning: 'Seconds between the probes of one callback URL; 0 switches monitoring off.',
  },
  webhookAckTimeoutMs: {
    variable: 'WEBHOOK_ACK_TIMEOUT_MS',
    fallback: '200',
    parse: integer(10, 60_000),
    meaning: 'Milliseconds a callback URL has to acknowledge after the body was sent.',
  },
  webhookRetrySchedule: {
    variable: 'WEBHOOK_RETRY_SCHEDULE',
    fallback: '5s,30s,2m,5m,15m,30m,1h,2h,4h,6h,8h,12h,12h,12h,12h',
    parse: parseRetrySchedule,
    meaning: 'Waits between the attempts of one delivery; after the last it is given up.',
  },
  webhookPlainHosts: {
    variable: 'WEBHOOK_PLAIN_HOSTS',
    fallback: AUTOMATION_HOSTS.join(','),
    parse: hosts,
    meaning:
      'Callback hosts, with all below them, that cannot read gzip and are sent plain bodies, separated by commas.',
  },
  webhookBotName: {
    variable: 'WEBHOOK_BOT_NAME',
    fallback: 'Queued Crawler',
    parse: productName,
    meaning:
      'The name in the User-Agent of deliveries and probes, such as `Queued Crawler Monitoring Bot 1.0`.',
  },
  resultRetentionDays: {
    variable: 'RESULT_RETENTION_DAYS',
    fallback: '14',
    parse: integer(1, 3_650),
    meaning: 'Days a stored result, or a delivery that was given up, is kept.',
  },
  maxBodyBytes: {
    variable: 'MAX_BODY_BYTES',
    fallback: '10485760',
    parse: integer(1_024, LARGEST_BODY),
    meaning: 'Longest page, decoded; a longer one fails.',
  },
  memoryBudgetBytes: {
    variable: 'MEMORY_BUDGET_BYTES',
    fallback: '',
    parse: memoryBudget,
    meaning:
      'Bytes in flight in each process: three quarters for pages, one for requests and replies; an eighth of its memory (128 MiB to 1 GiB) when not set.',
  },
  crawlThreads: {
    variable: 'CRAWL_THREADS',
    fallback: '',
    parse: crawlThreads,
    meaning:
      'Threads that crawl by plain HTTP, in addition to the service. Default: cores minus one, 2 to 8 (1 on a single core). While several accounts crawl, and always on MongoDB, they leave one core free.',
  },
  crawlTimeoutSeconds: {
    variable: 'CRAWL_TIMEOUT_SECONDS',
    fallback: '90',
    parse: integer(1, 600),
    meaning: 'Longest crawl, redirects and waits included.',
  },
  shutdownSeconds: {
    variable: 'SHUTDOWN_SECONDS',
    fallback: '20',
    parse: integer(0, 600),
    meaning:
      'Seconds that calls have to end after SIGTERM. Queued crawls and deliveries have three quarters of them.',
  },
  smtpUrl: {
    variable: 'SMTP_URL',
    fallback: '',
    parse: url('smtp', 'smtps'),
    meaning: 'Mail server for notices; without it they are logged.',
  },
  mailFrom: {
    variable: 'MAIL_FROM',
    fallback: 'queued-crawler@localhost',
    parse: mailAddress,
    meaning: 'Sender of notices.',
  },
  accountEmail: {
    variable: 'ACCOUNT_EMAIL',
    fallback: '',
    parse: mailAddress,
    meaning: 'Where notices to account default go.',
  },
  ...browserSettings,
  proxies: {
    variable: 'PROXIES',
    fallback: '',
    parse: parseProxies,
    meaning:
      'JSON from pool to its proxies: a URL (http, https, socks5), a list, or an object, see proxies.md. A pool may be named by an ISO country, "*" for every other country, or tor; "direct" stands for no proxy.',
  },
  proxyTarget: {
    variable: 'PROXY_TARGET',
    fallback: 'address',
    parse: choice('address', 'name'),
    meaning:
      'What proxies are asked to connect to: the address that was judged here, or the name, for proxies that take nothing else.',
  },
  proxySealKeys: {
    variable: 'PROXY_SEAL_KEY',
    fallback: '',
    parse: tokens,
    meaning:
      'Secret that seals the proxy URLs of accounts in the database; the same for all processes. Of several, separated by commas, the first seals and all open. Without it the key is in the database, too.',
  },
  mcp: {
    variable: 'MCP',
    fallback: 'read',
    parse: choice('off', 'read', 'push'),
    meaning:
      'What agents may do at /mcp with a token. off: nothing; read: read results and statistics; push: push URLs and crawl, too.',
  },
  publicUrl: {
    variable: 'PUBLIC_URL',
    fallback: '',
    parse: baseUrl,
    meaning:
      'Base of the URLs in replies (storage_url, screenshot_url); http://HOST:PORT when not set.',
  },
  tlsCertFile: {
    variable: 'TLS_CERT',
    fallback: '',
    parse: text,
    meaning: 'PEM file of the certificate chain; with TLS_KEY the port speaks TLS.',
  },
  tlsKeyFile: {
    variable: 'TLS_KEY',
    fallback: '',
    parse: text,
    meaning: 'PEM file of the private key.',
  },
  tlsPreferred: {
    variable: 'TLS_PREFERRED',
    fallback: 'h2',
    parse: choice('h2', 'http/1.1'),
    meaning:
      'The protocol for TLS clients that offer both (ALPN): h2 or http/1.1. Streams of both directions and gRPC need h2.',
  },
  ...observabilitySettings,
} as const satisfies Record<string, ConfigText>;
