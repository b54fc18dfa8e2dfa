// Creates a crawler, pushes URLs through one stream and waits for their results, over gRPC with the generated types.

import { gunzipSync } from 'node:zlib';
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import {
  StorageService,
  type StoredResult,
} from '../../gen/queuedcrawler/v1/storage_service_pb.ts';

const token = process.env.TOKEN ?? 'example-normal-token';
const targets = process.argv.slice(2);
if (targets.length === 0) targets.push('https://example.com/', 'https://example.org/');
const crawler = 'example-grpc-node';

const authorize: Interceptor = (next) => (request) => {
  request.header.set('authorization', `Bearer ${token}`);
  return next(request);
};
const transport = createGrpcTransport({
  baseUrl: process.env.BASE ?? 'http://127.0.0.1:8080',
  interceptors: [authorize],
});
const crawlers = createClient(CrawlerService, transport);
const pushes = createClient(PushService, transport);
const storage = createClient(StorageService, transport);

/** Waits for a result by asking for it. A webhook saves the asking. */
async function resultOf(rid: string, timeoutMs = 60_000): Promise<StoredResult> {
  const giveUpAt = Date.now() + timeoutMs;
  while (Date.now() < giveUpAt) {
    try {
      const { result } = await storage.getResult({ rid });
      if (result !== undefined) return result;
    } catch (error) {
      if (ConnectError.from(error).code !== Code.NotFound) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`${rid} has no result after ${timeoutMs} ms.`);
}

async function* requests() {
  // A request may carry up to 1,000 items.
  for (const [index, url] of targets.entries()) {
    yield { crawler, sequence: BigInt(index), items: [{ url }] };
  }
}

// Creating it again with the same values is allowed.
await crawlers.createCrawler({ name: crawler, concurrency: 5 });

const rids: string[] = [];
for await (const { results, sequence } of pushes.pushStream(requests())) {
  for (const { rid, error } of results) {
    const target = targets[Number(sequence)];
    if (error === undefined) {
      console.log(`pushed ${target} as ${rid}`);
      rids.push(rid);
    } else console.log(`refused ${target}: ${error.code}`);
  }
}

for (const rid of rids) {
  const result = await resultOf(rid);
  // Stored pages are gzip-compressed.
  const page = gunzipSync(result.body).toString();
  const title = /<title>(.*?)<\/title>/s.exec(page)?.[1];
  console.log(`crawled: cb_status ${result.cbStatus}, title: ${title}`);
}

// An error's reason is for programs, its message for people.
try {
  await pushes.push({ crawler: 'no-such-crawler', url: 'https://example.com/' });
} catch (error) {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  console.log(`expected error: ${Code[ConnectError.from(error).code]}, reason ${info?.reason}`);
}
