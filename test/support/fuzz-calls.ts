import { gzipSync } from 'node:zlib';
import { create, type DescMethod, toBinary, toJsonString } from '@bufbuild/protobuf';
import { Health } from '../../gen/health/v1/health_pb.ts';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../gen/queuedcrawler/v1/host_service_pb.ts';
import { OperatorService } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { ProxyService } from '../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';
import type { Noise } from './noise.ts';
import { ADMIN, JAVASCRIPT, NORMAL } from './tokens.ts';

/** One call as it goes over the wire, nearly right. */
export interface FuzzCall {
  readonly protocol: 'rest' | 'connect' | 'grpc' | 'grpc-web';
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const RID = '0123456789abcdef01234567';
const PLACE = Buffer.from(`5.${RID}`).toString('base64url');
// Nothing listens there, and the service under test may not go anywhere.
const url = 'http://127.0.0.1:1/a?b=c';
const parameters = { pageWait: 5, userAgent: 'x', getCookies: true };
const item = { url, callbackHeaders: 'a|b', queueTimeout: 5, method: 'POST', parameters };

/** Requests that are right, from which the others are made. */
const requests: readonly (readonly [DescMethod, object])[] = [
  [
    CrawlerService.method.createCrawler,
    { name: 'fuzz', concurrency: 3, politeness: { delayMs: 5 } },
  ],
  [CrawlerService.method.listCrawlers, { pageSize: 5, pageToken: 'YQ' }],
  [
    CrawlerService.method.listCrawlers,
    { nameContains: 'f', orderBy: 3, descending: true, withActivity: true, pageToken: 'MQ' },
  ],
  [CrawlerService.method.getCrawler, { name: 'fuzz' }],
  [CrawlerService.method.updateCrawler, { name: 'fuzz', concurrency: 4 }],
  [CrawlerService.method.purgeCrawler, { name: 'fuzz' }],
  [CrawlerService.method.findJob, { name: 'fuzz', rid: RID }],
  [CrawlerService.method.deleteJob, { name: 'fuzz', rid: RID }],
  [CrawlerService.method.replayDeliveries, { name: 'fuzz', rid: RID }],
  [
    CrawlerService.method.replayDeliveries,
    { name: 'fuzz', from: { seconds: 1_790_000_000n }, state: 3, maxCount: 5 },
  ],
  [CrawlerService.method.testDelivery, { name: 'fuzz' }],
  [ActivityService.method.listJobs, { name: 'fuzz', state: 1, pageSize: 5, pageToken: PLACE }],
  [ActivityService.method.listResults, { name: 'fuzz', outcome: 2, pageToken: 'MQ' }],
  [ActivityService.method.listDeliveries, { name: 'fuzz', state: 1, pageToken: PLACE }],
  [ActivityService.method.listFailures, { name: 'fuzz', kind: 2 }],
  [ActivityService.method.findRid, { rid: RID }],
  [ActivityService.method.getActivity, {}],
  [HostService.method.listHosts, { name: 'fuzz', orderBy: 2, maxCount: 5, hostContains: 'a' }],
  [HostService.method.pauseHost, { name: 'fuzz', host: 'a.example:81' }],
  [HostService.method.unpauseHost, { name: 'fuzz', host: 'a.example:81' }],
  [HostService.method.purgeHost, { name: 'fuzz', host: 'a.example:81' }],
  [ProxyService.method.createProxyPool, { name: 'fuzz', proxies: ['http://a:b@203.0.113.7:1'] }],
  [ProxyService.method.listProxyPools, {}],
  [ProxyService.method.getProxyPool, { name: 'fuzz' }],
  [
    ProxyService.method.updateProxyPool,
    { name: 'fuzz', gateway: 'http://u-{session}:p@g.example' },
  ],
  [ProxyService.method.deleteProxyPool, { name: 'fuzz' }],
  [WatchService.method.watchCrawlers, { nameContains: 'f' }],
  [WatchService.method.watchCrawler, { name: 'fuzz' }],
  [WatchService.method.watchActivity, {}],
  [PushService.method.push, { crawler: 'fuzz', ...item, body: Buffer.from('a=1') }],
  [PushService.method.pushBatch, { crawler: 'fuzz', items: [item, { url }], requestId: 'r' }],
  [PushService.method.pushStream, { crawler: 'fuzz', items: [item], sequence: 9n }],
  [StorageService.method.getResult, { rid: RID, url }],
  [StorageService.method.bulkGetResults, { rids: [RID, RID], autoDelete: true }],
  [StorageService.method.deleteResult, { rid: RID }],
  [StorageService.method.listRids, { limit: 5, scroll: true, scrollId: `desc.5.${RID}` }],
  [StorageService.method.countResults, {}],
  [StatsService.method.getStats, { historyFrom: '2026-01-01', historyTo: '2026-02-01' }],
  [AccountService.method.getAccount, { name: 'default' }],
  [OperatorService.method.getInstallation, {}],
  [OperatorService.method.getSetup, {}],
  [OperatorService.method.listProxies, { pool: 'a' }],
  [Health.method.check, { service: 'queuedcrawler.v1.PushService' }],
];

const restCalls: readonly (readonly [method: string, path: string, body: string])[] = [
  ['GET', `/?token=${NORMAL}&crawler=fuzz&callback=true&url=${encodeURIComponent(url)}`, ''],
  ['POST', `/?token=${NORMAL}&crawler=fuzz&url=${encodeURIComponent(url)}&page_wait=5`, 'a=1'],
  [
    'POST',
    `/crawler/${NORMAL}`,
    '{"name":"fuzz","concurrency":3,"politeness":{"robots_txt":true}}',
  ],
  ['PUT', `/crawler/${NORMAL}/fuzz`, '{"concurrency":5,"callback_url":"http://127.0.0.1:1/"}'],
  ['GET', `/crawler/${NORMAL}/stats?history_from=2026-01-01&history_to=2026-02-01`, ''],
  ['GET', `/crawler/${NORMAL}/fuzz/find_by_rid/${RID}`, ''],
  ['POST', `/crawler/${NORMAL}/fuzz/delete_job?rid=${RID}`, ''],
  ['POST', `/crawler/${NORMAL}/fuzz/push_batch`, `{"items":[{"url":"${url}"},{"url":"x"}]}`],
  [
    'POST',
    `/crawler/${NORMAL}/fuzz/replay`,
    `{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}`,
  ],
  ['GET', `/crawler/${NORMAL}?name_contains=f&status=paused&order_by=rate&with_activity=true`, ''],
  ['GET', `/crawler/${NORMAL}/fuzz/jobs?state=waiting&page_size=5&page_token=${PLACE}`, ''],
  ['GET', `/crawler/${NORMAL}/fuzz/deliveries?state=failed&outcome=completed`, ''],
  ['GET', `/crawler/${NORMAL}/fuzz/failures?kind=retry`, ''],
  ['GET', `/storage/results?token=${NORMAL}&outcome=failed&page_token=MQ`, ''],
  ['GET', `/find_by_rid/${NORMAL}/${RID}`, ''],
  ['GET', `/activity/${NORMAL}`, ''],
  ['GET', `/watch/${NORMAL}/activity`, ''],
  ['GET', `/watch/${NORMAL}/crawlers?name_contains=f`, ''],
  ['GET', `/storage?token=${NORMAL}&rid=${RID}&format=json`, ''],
  ['POST', `/storage/bulk?token=${NORMAL}`, `{"rids":["${RID}"],"auto_delete":true}`],
  ['POST', `/storage/bulk_delete?token=${NORMAL}`, `{"rids":["${RID}"]}`],
  ['GET', `/storage/rids?token=${NORMAL}&limit=5&scroll=true&scroll_order=asc`, ''],
  ['DELETE', `/storage?token=${NORMAL}&rid=${RID}`, ''],
  ['GET', `/accounts?page_size=5&page_token=YQ`, ''],
  ['GET', '/installation', ''],
  ['GET', '/installation/proxies?pool=a', ''],
  ['GET', '/installation/setup?check=false', ''],
  ['GET', `/screenshots?id=${RID}`, ''],
];

const pieces = [
  '"',
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  'null',
  '-1',
  '1e999',
  '\\u0000',
  '%00',
  '%',
  '&',
  '=',
  '/',
  '..',
  '__proto__',
  '\ud800',
];

/** Makes the next call. The same noise gives the same calls. */
export function nextCall(noise: Noise): FuzzCall {
  return noise.int(3) === 0 ? restCall(noise) : rpcCall(noise);
}

function restCall(noise: Noise): FuzzCall {
  const [method, path, body] = noise.pick(restCalls);
  const changes = noise.int(3);
  const text = changes === 0 ? path : mutatedText(noise, path);
  const [packed, encoding] = maybePacked(
    noise,
    noise.int(2) === 0 ? Buffer.from(body) : mutated(noise, Buffer.from(body)),
  );
  return {
    protocol: 'rest',
    method:
      noise.int(8) === 0
        ? noise.pick(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'])
        : method,
    path: sendable(text),
    headers: {
      ...authorization(noise),
      ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      ...(noise.int(2) === 0 ? {} : { 'content-type': 'application/json' }),
    },
    body: packed,
  };
}

function rpcCall(noise: Noise): FuzzCall {
  const protocol = noise.pick(['connect', 'grpc', 'grpc-web'] as const);
  const [desc, init] = noise.pick(requests);
  const isJson = noise.int(2) === 0;
  const token = noise.int(8) === 0 ? { token: noise.pick([NORMAL, JAVASCRIPT]) } : {};
  const message = create(desc.input, { ...token, ...init });
  const right = isJson
    ? Buffer.from(toJsonString(desc.input, message))
    : Buffer.from(toBinary(desc.input, message));
  const content = noise.int(5) === 0 ? right : mutated(noise, right);
  const [packed, encoding] = maybePacked(noise, content);
  const format = isJson ? 'json' : 'proto';
  const isFramed = protocol !== 'connect' || desc.methodKind !== 'unary';
  const encodingHeader =
    protocol === 'connect'
      ? isFramed
        ? 'connect-content-encoding'
        : 'content-encoding'
      : 'grpc-encoding';
  const type =
    protocol === 'connect' ? (isFramed ? `connect+${format}` : format) : `${protocol}+${format}`;
  return {
    protocol,
    method: noise.int(30) === 0 ? noise.pick(['GET', 'PUT']) : 'POST',
    path: `/${desc.parent.typeName}/${desc.name}${noise.int(30) === 0 ? `?${sendable(noise.text(pieces))}` : ''}`,
    headers: {
      ...authorization(noise),
      'content-type': `application/${type}`,
      ...(protocol === 'grpc' ? { te: 'trailers' } : {}),
      ...(encoding === undefined ? {} : { [encodingHeader]: encoding }),
      ...(noise.int(40) === 0
        ? { [noise.pick(['grpc-timeout', 'connect-timeout-ms'])]: '9x' }
        : {}),
    },
    body: isFramed ? framed(noise, packed, encoding !== undefined) : packed,
  };
}

function authorization(noise: Noise): Record<string, string> {
  const kind = noise.int(40);
  // Many wrong tokens would be answered with 429, and nothing behind it would be seen.
  if (kind === 0) return { authorization: 'Bearer nobody-knows-this-one' };
  if (kind === 1) return { authorization: NORMAL };
  if (kind < 6) return {};
  return { authorization: `Bearer ${noise.pick([NORMAL, NORMAL, NORMAL, JAVASCRIPT, ADMIN])}` };
}

function framed(noise: Noise, data: Buffer, isPacked: boolean): Buffer {
  const head = Buffer.alloc(5);
  head[0] = noise.int(12) === 0 ? noise.int(256) : Number(isPacked);
  head.writeUInt32BE(noise.int(12) === 0 ? noise.int(0xffffffff) : data.byteLength, 1);
  const frame = Buffer.concat([head, data]);
  const copies = noise.int(10) === 0 ? noise.int(4) : 1;
  return Buffer.concat(Array.from({ length: copies }, () => frame));
}

function maybePacked(noise: Noise, content: Buffer): [Buffer, string | undefined] {
  const kind = noise.int(12);
  if (kind === 0) return [gzipSync(content), 'gzip'];
  if (kind === 1) return [mutated(noise, gzipSync(content)), 'gzip'];
  if (kind === 2) return [content, noise.pick(['gzip', 'br', 'identity', 'zstd', 'x'])];
  return [content, undefined];
}

function mutated(noise: Noise, content: Buffer): Buffer {
  let bytes = Buffer.from(content);
  for (let left = noise.int(4); left >= 0; left -= 1) {
    const at = noise.int(bytes.byteLength + 1);
    const kind = noise.int(6);
    if (kind === 0) bytes = bytes.subarray(0, at);
    else if (kind === 1 && at < bytes.byteLength) bytes[at] = noise.int(256);
    else if (kind === 2)
      bytes = Buffer.concat([bytes.subarray(0, at), noise.bytes(8), bytes.subarray(at)]);
    else if (kind === 3)
      bytes = Buffer.concat([
        bytes.subarray(0, at),
        Buffer.from(noise.text(pieces, 3)),
        bytes.subarray(at),
      ]);
    else if (kind === 4) bytes = Buffer.concat([bytes, bytes.subarray(at)]);
    else bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + noise.int(4))]);
  }
  return Buffer.from(bytes);
}

function mutatedText(noise: Noise, text: string): string {
  return mutated(noise, Buffer.from(text)).toString('latin1');
}

/** What HTTP lets stand in a path; the rest is percent-encoded. */
function sendable(text: string): string {
  const path = text.replace(
    /[^\x21-\x7e]/g,
    (character) => `%${(character.charCodeAt(0) & 0xff).toString(16).padStart(2, '0')}`,
  );
  return path.startsWith('/') ? path : `/${path}`;
}
