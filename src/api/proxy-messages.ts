import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type {
  ProxyHostSchema,
  ProxySchema,
} from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import type { ProxyHostReport, ProxyReport } from '../domain/proxy-pools.ts';

/** A proxy on the wire, without its credentials. */
export function toProxyMessage(proxy: ProxyReport): MessageInitShape<typeof ProxySchema> {
  const { pool, label, trouble, blockedAt, hosts, hasPassword } = proxy;
  return {
    pool,
    proxy: label,
    trouble: trouble?.reason,
    retryAt: trouble && timestampFromDate(new Date(trouble.untilMs)),
    lastFailure: proxy.lastFailure,
    pages: BigInt(proxy.pages),
    blocks: BigInt(proxy.blocks),
    failures: BigInt(proxy.failures),
    receivedBytes: BigInt(proxy.received),
    sentBytes: BigInt(proxy.sent),
    blockedAt: [...blockedAt],
    hasCredentials: hasPassword,
    hosts: hosts.map((each) => toProxyHostMessage({ pool, ...each })),
  };
}

/** A host that was crawled through proxies, on the wire. */
export function toProxyHostMessage(row: ProxyHostReport): MessageInitShape<typeof ProxyHostSchema> {
  const { pool, host, pages, blocks, failures, bytes } = row;
  return {
    pool,
    host,
    pages: BigInt(pages),
    blocks: BigInt(blocks),
    failures: BigInt(failures),
    bytes: BigInt(bytes),
  };
}
