import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { compatibleAssets, compatiblePages, DONE } from './compatible-pages.ts';
import { listen } from './listen.ts';
import { npmFile } from './react-bundle.ts';

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', mjs: 'text/javascript' };

/** The site of `compatible-pages.ts`, each page at its name, with a WebSocket that says one message. */
export async function startCompatibleSite(): Promise<
  AsyncDisposable & { readonly url: string; readonly host: string }
> {
  const assets = compatibleAssets();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const page = compatiblePages[pathname.slice(1)];
    if (page !== undefined) {
      const headers = { 'content-type': 'text/html; charset=utf-8', ...page.headers };
      const given = Object.entries(headers).filter(([, value]) => value !== '');
      response.writeHead(page.status ?? 200, Object.fromEntries(given)).end(page.html);
      return;
    }
    if (pathname === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${DONE}\n\n`);
      return;
    }
    const [type, body] = assets[pathname] ?? npmAsset(pathname) ?? [];
    if (body === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': type }).end(body);
  });
  server.on('upgrade', (request, socket) => {
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    socket.on('error', () => socket.destroy());
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
    socket.write(Buffer.concat([Buffer.from([0x81, DONE.length]), Buffer.from(DONE)]));
  });
  const open = await listen(server);
  const host = `127.0.0.1:${open.port}`;
  return {
    url: `http://${host}`,
    host,
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}

/** `/npm/PACKAGE/FILE`: a file of a package. */
function npmAsset(path: string): readonly [string, Buffer] | undefined {
  const [, name, file] = /^\/npm\/((?:@[^/]+\/)?[^/]+)\/(.+)$/.exec(path) ?? [];
  if (name === undefined || file === undefined) return undefined;
  const content = readFileSync(npmFile(name, file));
  return [TYPES[file.split('.').at(-1) ?? ''] ?? 'text/plain', content];
}
