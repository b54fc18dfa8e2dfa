import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { startApp } from '../support/app.ts';
import { bytesRoute, crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { listen } from '../support/listen.ts';
import { startSite } from '../support/site.ts';

const SHOW = 'const show = (text) => { out.textContent += text + " "; };';

/** Answers every WebSocket with one frame of text. */
async function startSocketServer(text: string) {
  const server = createServer();
  server.on('upgrade', (request, socket) => {
    socket.on('error', () => undefined);
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
    socket.write(Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]));
  });
  return listen(server);
}

test('everything a page loads passes its proxy: sockets, workers and what these load', async () => {
  await using sockets = await startSocketServer('by socket');
  const fetching = 'fetch("/text").then((each) => each.text())';
  await using site = await startSite({
    routes: {
      '/text': bytesRoute('text/plain', 'loaded'),
      '/worker.js': bytesRoute(
        'text/javascript',
        `${fetching}.then((text) => postMessage('worker ' + text));`,
      ),
      '/shared.js': bytesRoute(
        'text/javascript',
        `onconnect = ({ ports: [port] }) => { ${fetching}.then((text) => port.postMessage('shared ' + text)); };`,
      ),
      '/service.js': bytesRoute(
        'text/javascript',
        'onfetch = (event) => { if (event.request.url.endsWith("/made")) event.respondWith(fetch("/text")); }; onactivate = () => clients.claim();',
      ),
      '/events': (_: IncomingMessage, response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: event\n\n');
      },
      '/all': htmlRoute(`<p id="out"></p><script>${SHOW}
        new WebSocket('ws://127.0.0.1:${sockets.port}/').onmessage = ({ data }) => show(data);
        new Worker('/worker.js').onmessage = ({ data }) => show(data);
        new SharedWorker('/shared.js').port.onmessage = ({ data }) => show(data);
        new EventSource('/events').onmessage = ({ data }) => show('by ' + data);
        navigator.serviceWorker.oncontrollerchange = () => fetch('/made').then((each) => each.text()).then((text) => show('service ' + text));
        navigator.serviceWorker.register('/service.js');
      </script>`),
    },
  });
  await using app = await startApp({
    env: { NETWORK_ALLOW: `${site.host},127.0.0.1:${sockets.port}` },
  });
  const { body } = await crawlInBrowser(app, `${site.url}/all`, { page_wait: '5000' });
  for (const shown of [
    'by socket',
    'worker loaded',
    'shared loaded',
    'by event',
    'service loaded',
  ]) {
    expect(body).toContain(shown);
  }
  expect(site.seen.filter(({ headers }) => 'proxy-authorization' in headers)).toEqual([]);
});

test("a site's own password is the URL's, or the client's", async () => {
  await using site = await startSite({
    routes: {
      '/secret': (request, response) => {
        const { authorization } = request.headers;
        if (authorization === `Basic ${Buffer.from('user:word').toString('base64')}`) {
          response.writeHead(200, { 'content-type': 'text/html' }).end('<p>opened</p>');
        } else
          response
            .writeHead(401, { 'www-authenticate': 'Basic realm="x"', 'content-type': 'text/html' })
            .end('<p>closed</p>');
      },
    },
  });
  await using app = await startApp({ env: { NETWORK_ALLOW: site.host } });
  expect((await crawlInBrowser(app, `http://user:word@${site.host}/secret`)).body).toContain(
    'opened',
  );
  const without = await crawlInBrowser(app, `${site.url}/secret`);
  expect(without).toMatchObject({ original_status: 401 });
  expect(without.body).toContain('closed');
});

test('a site that has the browser forget everything still reaches what it loads', async () => {
  const forget = { 'clear-site-data': '"*"', 'content-type': 'text/plain' };
  await using site = await startSite({
    routes: {
      '/text': bytesRoute('text/plain', 'loaded'),
      '/forget': (_request, response) => void response.writeHead(200, forget).end('forgotten'),
      '/forgets': htmlRoute(
        `<p id="out"></p><script>${SHOW}
          const load = async (path) => show(await (await fetch(path)).text());
          load('/forget').then(() => load('/text')).then(() => load('/forget')).then(() => load('/text'));
        </script>`,
        { 'clear-site-data': '"*"' },
      ),
    },
  });
  await using app = await startApp({ env: { NETWORK_ALLOW: site.host } });
  const { body } = await crawlInBrowser(app, `${site.url}/forgets`, { page_wait: '3000' });
  expect(body).toContain('forgotten loaded forgotten loaded');
});
