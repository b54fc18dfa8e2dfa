import { createClient } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL } from '../support/app.ts';
import { shareApp } from '../support/shared-app.ts';

const shared = shareApp();

const transports = {
  grpc: createGrpcTransport,
  'grpc-web': (options: { baseUrl: string }) =>
    createGrpcWebTransport({ ...options, httpVersion: '2' }),
  connect: (options: { baseUrl: string }) =>
    createConnectTransport({ ...options, httpVersion: '1.1' }),
};

test.each([
  // 2^31 - 1 ms, the longest timer of Node.
  ['connect', 'connect-timeout-ms', '2147483647'],
  ['connect', 'connect-timeout-ms', '2147483648'],
  ['connect', 'connect-timeout-ms', '9999999999'],
  ['grpc', 'grpc-timeout', '2147483S'],
  ['grpc', 'grpc-timeout', '2147484S'],
  ['grpc', 'grpc-timeout', '35792M'],
  ['grpc', 'grpc-timeout', '8760H'],
  ['grpc-web', 'grpc-timeout', '99999999H'],
] as const)('a call over %s with %s %s is answered', async (protocol, name, value) => {
  const client = createClient(StorageService, transports[protocol]({ baseUrl: shared().url }));
  const headers = { authorization: `Bearer ${NORMAL}`, [name]: value };
  expect(await client.countResults({}, { headers })).toMatchObject({ totalCount: 0n });
});
