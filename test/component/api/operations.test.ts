import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { credentials, loadPackageDefinition, Metadata, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startWire, type Wire } from '../../support/wire.ts';

// An independent client over descriptors of its own: the packages' protos and ours as files.
const root = new URL('../../..', import.meta.url).pathname;
const grpc = loadPackageDefinition(
  loadSync(
    [
      'grpc/reflection/v1/reflection.proto',
      'grpc/reflection/v1alpha/reflection.proto',
      'health/v1/health.proto',
      'queuedcrawler/v1/crawler_service.proto',
      'queuedcrawler/v1/push_service.proto',
    ],
    {
      includeDirs: [
        'node_modules/@grpc/reflection/build/proto',
        'node_modules/grpc-health-check/proto',
        'node_modules/google-gax/build/protos',
        'proto',
      ].map((folder) => root + folder),
      defaults: true,
      enums: String,
      longs: String,
    },
  ),
) as unknown as Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- made at run time

let wire: Wire;
let ready: boolean;
const clients: { close(): void }[] = [];
beforeEach(async () => {
  ready = true;
  wire = await startWire({ isReady: () => ready });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await wire.edge.close(0);
});

function open(service: string) {
  const Client = service.split('.').reduce((found, name) => found[name], grpc) as any; // oxlint-disable-line typescript/no-explicit-any -- as above
  const client = new Client(`127.0.0.1:${wire.port}`, credentials.createInsecure());
  clients.push(client);
  return client;
}

// oxlint-disable-next-line typescript/no-explicit-any -- as above
function unary(client: any, name: string, request: object, metadata = new Metadata()) {
  return new Promise<Record<string, unknown>>((resolve, reject) => {
    client[name](request, metadata, (error: Error | null, reply: Record<string, unknown>) => {
      if (error === null) resolve(reply);
      else reject(error);
    });
  });
}

test('a unary call, its errors and its metadata', async () => {
  const client = open('queuedcrawler.v1.CrawlerService');
  const metadata = new Metadata();
  metadata.set('authorization', 'Bearer tok');
  const reply = await unary(client, 'createCrawler', { name: 'x' }, metadata);
  expect(reply).toMatchObject({ crawler: { name: 'x', concurrency: 20 }, created: true });
  expect(wire.seen.calls.at(-1)).toMatchObject({ bearer: 'tok', protocol: 'grpc' });
  await expect(unary(client, 'getCrawler', { name: 'exhausted' })).rejects.toMatchObject({
    code: status.RESOURCE_EXHAUSTED,
    details: 'Too fast.',
  });
  await expect(unary(client, 'pauseCrawler', {})).rejects.toMatchObject({
    code: status.UNIMPLEMENTED,
  });
  // Commas, slashes and colons arrive as they are.
  await expect(unary(client, 'getCrawler', { name: 'invalid' })).rejects.toMatchObject({
    details: 'name: 100% "ü", not a/b.',
  });
  // A method that exists in the proto but not on this server.
  const health = open('grpc.health.v1.Health');
  await expect(unary(health, 'check', { service: 'no.Such' })).rejects.toMatchObject({
    code: status.NOT_FOUND,
  });
});

test('a stream both ways', async () => {
  const stream = open('queuedcrawler.v1.PushService').pushStream();
  const answers: unknown[] = [];
  stream.on('data', (answer: { sequence: string }) => answers.push(answer.sequence));
  const ended = new Promise((resolve) => stream.on('status', resolve));
  stream.write({ sequence: 1, items: [] });
  await eventually(() => expect(answers).toEqual(['1']));
  stream.write({ sequence: 2, items: [] });
  stream.end();
  expect(await ended).toMatchObject({ code: status.OK });
  expect(answers).toEqual(['1', '2']);
});

test('health: check, list and watch', async () => {
  const client = open('grpc.health.v1.Health');
  expect(await unary(client, 'check', {})).toEqual({ status: 'SERVING' });
  const named = { service: 'queuedcrawler.v1.PushService' };
  expect(await unary(client, 'check', named)).toEqual({ status: 'SERVING' });
  expect((await unary(client, 'list', {}))['statuses']).toMatchObject({
    '': { status: 'SERVING' },
    'queuedcrawler.v1.CrawlerService': { status: 'SERVING' },
  });
  const seen: string[] = [];
  const watch = client.watch(named);
  watch.on('data', (answer: { status: string }) => seen.push(answer.status));
  watch.on('error', () => undefined);
  await eventually(() => expect(seen).toEqual(['SERVING']));
  ready = false;
  await eventually(() => expect(seen).toEqual(['SERVING', 'NOT_SERVING']));
  expect(await unary(client, 'check', {})).toEqual({ status: 'NOT_SERVING' });
  watch.cancel();
});

test.each(['v1', 'v1alpha'])('reflection %s', async (version) => {
  const stream = open(`grpc.reflection.${version}.ServerReflection`).serverReflectionInfo();
  // oxlint-disable-next-line typescript/no-explicit-any -- made at run time
  const answers: any[] = [];
  stream.on('data', (answer: unknown) => answers.push(answer));
  const ended = new Promise((resolve) => stream.on('status', resolve));
  const ask = async (request: object) => {
    const before = answers.length;
    stream.write(request);
    return eventually(() => answers[before] ?? Promise.reject(new Error('no answer yet')));
  };
  const listed = await ask({ list_services: '', listServices: '' });
  expect(listed.listServicesResponse.service.map(({ name }: { name: string }) => name)).toEqual([
    'grpc.reflection.v1.ServerReflection',
    'grpc.reflection.v1alpha.ServerReflection',
    'queuedcrawler.v1.CrawlerService',
    'queuedcrawler.v1.PushService',
    'queuedcrawler.v1.StorageService',
  ]);
  const filesIn = (answer: { fileDescriptorResponse: { fileDescriptorProto: Uint8Array[] } }) =>
    answer.fileDescriptorResponse.fileDescriptorProto.map(
      (bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name,
    );
  for (const fileContainingSymbol of [
    'queuedcrawler.v1.PushService',
    'queuedcrawler.v1.PushService.Push',
    'queuedcrawler.v1.PushRequest',
    'queuedcrawler.v1.PushRequest.url',
  ]) {
    const files = filesIn(await ask({ fileContainingSymbol }));
    expect(files[0]).toBe('queuedcrawler/v1/push_service.proto');
    expect(files).toContain('google/protobuf/descriptor.proto');
    expect(new Set(files).size).toBe(files.length);
  }
  // Tools ask for what the details of errors are, to show them.
  for (const fileContainingSymbol of [
    'google.rpc.ErrorInfo',
    'google.rpc.BadRequest.FieldViolation',
    'google.rpc.RetryInfo',
    'google.rpc.Status',
  ]) {
    const [file] = filesIn(await ask({ fileContainingSymbol }));
    expect(file).toMatch(/^google\/rpc\/(error_details|status)\.proto$/);
  }
  const byName = await ask({ fileByFilename: 'google/api/http.proto' });
  expect(filesIn(byName)).toEqual(['google/api/http.proto']);
  const containingType = 'google.protobuf.MethodOptions';
  const extension = { containingType, extensionNumber: 72_295_728 };
  expect(filesIn(await ask({ fileContainingExtension: extension }))[0]).toBe(
    'google/api/annotations.proto',
  );
  const numbers = await ask({ allExtensionNumbersOfType: containingType });
  expect(numbers.allExtensionNumbersResponse.extensionNumber.toSorted()).toEqual([
    50_001, 72_295_728,
  ]);
  const missing = await ask({ fileContainingSymbol: 'no.Such' });
  expect(missing.errorResponse).toMatchObject({ errorCode: status.NOT_FOUND });
  stream.end();
  expect(await ended).toMatchObject({ code: status.OK });
});
