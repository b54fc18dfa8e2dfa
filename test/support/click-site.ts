import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { listen } from './listen.ts';

/** What every page of `clickPages` says once all is there that a click on `#go` starts. */
export const CLICKED = 'clicked through';

/** A page whose `#go` starts something. */
export interface ClickPage {
  readonly html: string;
  /** Whether the tests have it at full length only. */
  readonly isLong?: true;
}

// The text is put together, so that the script of a page does not contain it.
const HELPERS = `const done = () => { out.textContent = ['clicked', 'through'].join(' '); };
const show = (text) => { out.textContent = text; };
const get = (path = '/data') => fetch(path).then((response) => response.text()).then(show);
const after = (ms, then) => setTimeout(then, ms);`;

/** A button that runs the code, which may call the helpers above. */
const button = (code: string, more = ''): ClickPage => ({
  html: `${more}<button id="go">go</button><script>go.onclick = async (event) => { ${code} };</script>`,
});
const long = (page: ClickPage): ClickPage => ({ ...page, isLong: true });

/** One for each way in which a click leads to what a person then sees. */
export const clickPages: Readonly<Record<string, ClickPage>> = {
  'a change at once': long(button('done()')),
  'a microtask': long(button('queueMicrotask(done)')),
  'a chain of promises': long(button('for (let n = 0; n < 50; n++) await null; done()')),
  'a message to itself': long(
    button(
      'const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(1)',
    ),
  ),
  'two frames': button('requestAnimationFrame(() => requestAnimationFrame(done))'),
  'an idle callback': long(button('requestIdleCallback(done)')),
  'a timer of 0 ms': long(button('after(0, done)')),
  'a timer of 30 ms': long(button('after(30, done)')),
  'a timer of 150 ms': long(button('after(150, done)')),
  'a timer of 300 ms': button('after(300, done)'),
  'a fetch': button('get()'),
  'a frame, then a fetch': button('requestAnimationFrame(() => get())'),
  'a timer of 0 ms, then a fetch': long(button('after(0, get)')),
  'a timer of 30 ms, then a fetch': long(button('after(30, () => get())')),
  'a timer of 100 ms, then a fetch': long(button('after(100, () => get())')),
  'a timer of 300 ms, then a fetch': button('after(300, () => get())'),
  'a fetch that takes a second': long(button('get("/slow")')),
  // Of other paths: the fourth to the same one is taken for a poll, and not waited for.
  'fetches one after the other': button(
    'for (let n = 0; n < 4; n++) await fetch("/data/" + n); await get()',
  ),
  'fetches with timers between': long(
    button(
      'await fetch("/data?1"); after(200, async () => { await fetch("/data?2"); after(200, done); })',
    ),
  ),
  'an XMLHttpRequest': long(
    button(
      'const call = new XMLHttpRequest(); call.open("GET", "/data"); call.onload = () => show(call.responseText); call.send()',
    ),
  ),
  'a module': long(button('const { text } = await import("/module.js"); show(text)')),
  'a script': long(
    button(
      'document.head.append(Object.assign(document.createElement("script"), { src: "/script.js" }))',
    ),
  ),
  'an image': long(button('Object.assign(new Image(), { onload: done, src: "/image.svg" })')),
  'a frame with a document': long(
    button(
      'document.body.append(Object.assign(document.createElement("iframe"), { src: "/slow", onload: done }))',
    ),
  ),
  'a WebSocket': button(
    'new WebSocket("ws://" + location.host + "/socket").onmessage = ({ data }) => show(data)',
  ),
  'server-sent events': long(
    button('new EventSource("/events").onmessage = ({ data }) => show(data)'),
  ),
  'a worker that fetches': button('new Worker("/worker.js").onmessage = ({ data }) => show(data)'),
  'an observer of changes': long(
    button(
      'new MutationObserver(done).observe(document.body, { childList: true }); after(20, () => document.body.append("."))',
    ),
  ),
  'the end of an animation': long(
    button(
      'go.style.animation = "fade 200ms"; go.onanimationend = done',
      '<style>@keyframes fade { from { opacity: 1 } to { opacity: 0.5 } }</style>',
    ),
  ),
  'a form by GET': long({ html: '<form action="/after"><button id="go">go</button></form>' }),
  'a form by POST': {
    html: '<form action="/after" method="post"><button id="go">go</button></form>',
  },
  'a form to its own address': {
    html: '<form method="post"><button id="go">go</button></form>',
  },
  'submit()': long(button('f.submit()', '<form id="f" action="/after"></form>')),
  'requestSubmit()': long(button('f.requestSubmit()', '<form id="f" action="/after"></form>')),
  'a form that a script sends': long({
    html: '<form id="f"><button id="go">go</button></form><script>f.onsubmit = (event) => { event.preventDefault(); get(); };</script>',
  }),
  'a new location': long(button('location = "/after"')),
  'a new location after 50 ms': button('after(50, () => { location = "/after"; })'),
  'a new location after 400 ms': button('after(400, () => { location = "/after"; })'),
  'a new location that is slow': button('location = "/slow"'),
  'a new location that renders late': button('location = "/after-late"'),
  'a new location after a fetch': long(button('await fetch("/data"); location.assign("/after")')),
  'a reload': long({
    html: '<button id="go" onclick="sessionStorage.was = 1; location.reload()">go</button><script>if (sessionStorage.was) done();</script>',
  }),
  'a new state': long(button('history.pushState({}, "", "/state"); after(50, done)')),
  'a new window': long(button('open("/after")')),
  'a link': long({ html: '<a id="go" href="/after">go</a>' }),
  'a link with a fragment': long({
    html: '<a id="go" href="#there">go</a><p id="there"></p><script>onhashchange = done;</script>',
  }),
  'a link of an application': long({
    html: '<a id="go" href="/after">go</a><script>go.onclick = (event) => { event.preventDefault(); get(); };</script>',
  }),
  details: long({
    html: '<details ontoggle="done()"><summary id="go">go</summary>more</details>',
  }),
  'the label of a checkbox': long({
    html: '<label id="go">go <input type="checkbox" onchange="get()"></label>',
  }),
  'an element in a shadow tree': long({
    html: `<p id="host"></p><script>const root = host.attachShadow({ mode: 'open' });
      root.innerHTML = '<button id="go">go</button>'; root.firstChild.onclick = () => after(100, get);</script>`,
  }),
};

/** The site of `clickPages`, each at its index. */
export async function startClickSite(): Promise<
  AsyncDisposable & { readonly host: string; pageOf(name: string): string }
> {
  const pages = Object.values(clickPages);
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const page = pages[Number(pathname.slice(1))];
    if (page === undefined || request.method === 'POST') return answer(pathname, response);
    html(response, `<p id="out"></p><script>${HELPERS}</script>${page.html}`);
  });
  server.on('upgrade', acceptSocket);
  const open = await listen(server);
  const host = `127.0.0.1:${open.port}`;
  return {
    host,
    pageOf: (name) => `http://${host}/${Object.keys(clickPages).indexOf(name)}`,
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}

/** Time that a person hardly notices, and one that no client takes for quiet. */
const ANSWER_MS = 60;
const SLOW_MS = 1_000;

function answer(path: string, response: ServerResponse): void {
  const as = (type: string, body: string) => () =>
    response.writeHead(200, { 'content-type': type }).end(body);
  const answers: Readonly<Record<string, () => void>> = {
    '/module.js': as('text/javascript', `export const text = '${CLICKED}';`),
    '/script.js': as('text/javascript', 'done();'),
    '/worker.js': as(
      'text/javascript',
      'fetch("/slow").then((response) => response.text()).then(postMessage);',
    ),
    '/image.svg': as('image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>'),
    '/after-late': () =>
      html(response, `<p id="out"></p><script>${HELPERS} after(100, () => get('/slow'));</script>`),
    '/events'() {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${CLICKED}\n\n`);
    },
  };
  const timer = setTimeout(
    answers[path] ?? (() => html(response, CLICKED)),
    path === '/slow' ? SLOW_MS : ANSWER_MS,
  );
  response.once('close', () => clearTimeout(timer));
}

function html(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(body);
}

function acceptSocket(request: IncomingMessage, socket: Duplex): void {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.on('error', () => socket.destroy());
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
  socket.write(Buffer.concat([Buffer.from([0x81, CLICKED.length]), Buffer.from(CLICKED)]));
}
