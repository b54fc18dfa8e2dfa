import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pages } from './page-text.ts';

// The peers of the service in benchmarks, in a process of their own. They are four sites to crawl;
// each also acknowledges webhooks, and replies to other requests with the reply of a push. Sends
// their ports to the parent process, then when paths below `/start` are asked for, and ends with
// it.

const RID = '{"rid":"0123456789abcdef01234567"}';

let served = 0;

const answer: RequestListener = (request, response) => {
  if (request.method === 'POST') {
    request.resume();
    request.on('end', () => response.writeHead(204).end());
    return;
  }
  if (request.url?.startsWith('/start') === true) {
    process.send?.({ path: request.url, at: performance.timeOrigin + performance.now() });
  }
  if (/^\/(page|start)/.test(request.url ?? '')) {
    served += 1;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(pages[served % pages.length]);
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(RID);
};

const SITES = 4;
const servers = Array.from({ length: SITES }, () => createServer(answer).listen(0, '127.0.0.1'));
await Promise.all(servers.map((server) => once(server, 'listening')));
process.send?.({ ports: servers.map((server) => (server.address() as AddressInfo).port) });
process.on('disconnect', () => process.exit(0));
