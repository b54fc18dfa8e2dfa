import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { npmFile, reactBundle } from '../test/support/react-bundle.ts';

// The site of the browser's benchmark, in a process of its own: `/small/N` is one document, `/app/N`
// a page that React renders, with 16 further requests. Sends its port to the parent process and ends
// with it.

const SMALL = `<!doctype html><title>Bench</title>${'<p>Some text of a page.</p>'.repeat(200)}`;
const IMAGES = 12;
const APP = `<!doctype html><title>Bench</title>
<link rel="stylesheet" href="/style.css"><div id="app"></div>
<script src="/react.js"></script><script src="/jquery.js"></script>
<script src="/app.js"></script>`;
const SCRIPT = `
  const row = (n) => React.createElement('p', { key: n }, 'Some text of row ' + n);
  const image = (n) => React.createElement('img', { key: 'i' + n, src: '/image-' + n + '.png' });
  const page = React.createElement('main', null,
    Array.from({ length: 200 }, (_, n) => row(n)), Array.from({ length: ${IMAGES} }, (_, n) => image(n)));
  ReactDOM.createRoot(document.querySelector('#app')).render(page);
  jQuery(() => jQuery('#app').addClass('ready'));`;
/** One pixel; the other bytes are read by nobody. */
const IMAGE = Buffer.concat([
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
  Buffer.alloc(8_000),
]);
const ASSETS: Readonly<Record<string, readonly [type: string, body: string | Buffer]>> = {
  '/style.css': ['text/css', 'p { margin: 4px; color: #333 } main.ready { background: #fff }'],
  '/react.js': ['text/javascript', reactBundle()],
  '/jquery.js': ['text/javascript', readFileSync(npmFile('jquery', 'dist/jquery.min.js'))],
  '/app.js': ['text/javascript', SCRIPT],
};

const server = createServer((request, response) => {
  const path = request.url ?? '';
  const asset = path.startsWith('/image-') ? (['image/png', IMAGE] as const) : ASSETS[path];
  if (asset === undefined) {
    const html = path.startsWith('/app/') ? APP : SMALL;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html);
    return;
  }
  const headers = { 'content-type': asset[0], 'cache-control': 'public, max-age=86400' };
  response.writeHead(200, headers).end(asset[1]);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.({ ports: [(server.address() as AddressInfo).port] });
process.on('disconnect', () => process.exit(0));
