import { gzipSync } from 'node:zlib';
import { compile } from 'svelte/compiler';
import { reactBundle } from './react-bundle.ts';

/** A page of the kind that real sites have. Its crawl succeeds when the result contains {@link DONE}. */
export interface CompatiblePage {
  readonly html: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  /** Parameters without which the page is not complete. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Where it leads; default where it is. */
  readonly endsAt?: string;
}

/** What every page shows in the end; no page contains it as such. */
export const DONE = 'compatible page is done';

const done = `'compatible ' + 'page is done'`;
const show = `document.querySelector('#out').textContent = ${done}`;
const out = '<p id="out"></p>';
const script = (text: string): string => `<script>${text}</script>`;
const module = (text: string): string => `<script type="module">${text}</script>`;
const late = { wait_for_selector: '#done' };
const showLate = `document.querySelector('#out').innerHTML = '<b id="done">' + ${done} + '</b>'`;

/** One pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function svelteComponent(): string {
  const source = `<script>let n = $state(0); $effect(() => { if (n < 3) n += 1; });</script>
    <p>{n}</p>{#if n === 3}<b id="done">{${done}}</b>{/if}`;
  return compile(source, { generate: 'client', dev: false }).js.code;
}

const IMPORT_MAP = `<script type="importmap">${JSON.stringify({
  imports: {
    lit: '/npm/lit/index.js',
    'lit/': '/npm/lit/',
    'lit-html': '/npm/lit-html/lit-html.js',
    'lit-html/': '/npm/lit-html/',
    'lit-element/': '/npm/lit-element/',
    '@lit/reactive-element': '/npm/@lit/reactive-element/reactive-element.js',
    vue: '/npm/vue/dist/vue.esm-browser.prod.js',
    own: '/module.js',
    clsx: '/npm/clsx/dist/clsx.mjs',
    '#client/constants': '/npm/svelte/src/internal/client/constants.js',
    'esm-env': 'data:text/javascript,export const BROWSER=true,DEV=false,NODE=false',
    svelte: '/npm/svelte/src/index-client.js',
    'svelte/events': '/npm/svelte/src/events/index.js',
    'svelte/reactivity': '/npm/svelte/src/reactivity/index-client.js',
    'svelte/internal/client': '/npm/svelte/src/internal/client/index.js',
    'svelte/internal/disclose-version': '/npm/svelte/src/internal/disclose-version.js',
    'svelte/internal/flags/async': '/npm/svelte/src/internal/flags/async.js',
    'svelte/internal/flags/legacy': '/npm/svelte/src/internal/flags/legacy.js',
  },
})}</script>`;

const SW_PAGE = `${out}${script(`
  navigator.serviceWorker.register('/service-worker.js').then(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) return location.reload();
    ${show.replace('=', '= await (await fetch("/from-worker")).text() +')};
  });`)}`;

const WEB_COMPONENT = script(`customElements.define('own-card', class extends HTMLElement {
  connectedCallback() {
    this.attachShadow({ mode: 'open' }).innerHTML = '<h2>card</h2><slot></slot><slot name="end"></slot><i></i>';
    this.shadowRoot.querySelector('i').textContent = ${done};
  } });`);

/** The pages by their paths. */
export const compatiblePages: Readonly<Record<string, CompatiblePage>> = {
  // Documents
  static: { html: `<p>${DONE}</p>` },
  xhtml: {
    html: `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>${out}<script>${show}</script></body></html>`,
    headers: { 'content-type': 'application/xhtml+xml' },
  },
  'no-type': { html: `<!doctype html>${out}${script(show)}`, headers: { 'content-type': '' } },
  'latin-1': {
    html: Buffer.from(
      `<p id="out">Grüße</p>${script(`if (out.textContent === 'Gr\\u00fc\\u00dfe') ${show}`)}`,
      'latin1',
    ),
    headers: { 'content-type': 'text/html; charset=iso-8859-1' },
  },
  compressed: { html: gzipSync(`${out}${script(show)}`), headers: { 'content-encoding': 'gzip' } },
  'not-found': { html: `${out}${script(show)}`, status: 404 },
  'error-page': { html: `${out}${script(show)}`, status: 403 },
  // Navigation
  refresh: { html: '<meta http-equiv="refresh" content="0;url=/static">', endsAt: '/static' },
  'refresh-header': { html: 'x', headers: { refresh: '0;url=/static' }, endsAt: '/static' },
  'script-redirect': { html: script('location.replace("/static")'), endsAt: '/static' },
  'load-redirect': { html: script('onload = () => { location = "/static" }'), endsAt: '/static' },
  'form-submit': {
    html: `<form action="/static"><input name="a"></form>${script('document.forms[0].submit()')}`,
    endsAt: '/static?a=',
  },
  'push-state': {
    html: `${out}${script(`history.pushState(0, '', '/route/1'); ${show}`)}`,
    endsAt: '/route/1',
  },
  'hash-route': {
    html: `${out}${script(`onhashchange = () => { ${show} }; location.hash = 'x'`)}`,
    endsAt: '/hash-route#x',
  },
  'navigation-api': {
    html: `${out}${script(`navigation.addEventListener('navigate', (e) => e.intercept({ handler: async () => { ${show} } })); navigation.navigate('/route/2')`)}`,
    endsAt: '/route/2',
  },
  beforeunload: {
    html: script('onbeforeunload = (e) => e.preventDefault(); location = "/static"'),
    endsAt: '/static',
  },
  // Frameworks
  react: {
    html: `<div id="app"></div><script src="/react.js"></script>${script(`const e = React.createElement;
      const App = () => { const [n, set] = React.useState(0); React.useEffect(() => { if (n < 3) set(n + 1); }, [n]);
        return e('main', null, e('p', null, n), n === 3 && e('b', { id: 'done' }, ${done})); };
      ReactDOM.createRoot(app).render(e(App));`)}`,
    parameters: late,
  },
  'react-hydrated': {
    html: `<div id="app"><p>waits</p></div><script src="/react.js"></script>${script(`const e = React.createElement;
      const App = () => { const [text, set] = React.useState('waits'); React.useEffect(() => { fetch('/data.json').then((r) => r.json()).then((d) => set(d.text)); }, []); return e('p', null, text); };
      ReactDOM.hydrateRoot(app, e(App));`)}`,
    parameters: { ajax_wait: 'true' },
  },
  vue: {
    html: `<div id="app"><ul><li v-for="n in rows">{{ n }}</li></ul><b>{{ text }}</b></div><script src="/npm/vue/dist/vue.global.prod.js"></script>
      ${script(`Vue.createApp({ data: () => ({ rows: [1, 2], text: '' }), mounted() { this.text = ${done}; } }).mount('#app')`)}`,
  },
  'vue-modules': {
    html: `${IMPORT_MAP}<div id="app"></div>${module(`import { createApp, ref, h } from 'vue'; const text = ref('');
      createApp({ setup: () => () => h('p', text.value) }).mount('#app'); text.value = ${done};`)}`,
  },
  lit: {
    html: `${IMPORT_MAP}<own-list></own-list>${module(`import { LitElement, html } from 'lit';
      customElements.define('own-list', class extends LitElement { render() { return html\`<p id="done">\${${done}}</p>\`; } });`)}`,
    parameters: late,
  },
  svelte: {
    html: `${IMPORT_MAP}<div id="app"></div>${module(`import { mount } from 'svelte'; import App from '/svelte.js'; mount(App, { target: app });`)}`,
    parameters: late,
  },
  alpine: {
    html: `<div x-data="{ text: '' }" x-init="text = ${done}"><p x-text="text"></p></div><script src="/npm/alpinejs/dist/cdn.min.js" defer></script>`,
  },
  jquery: {
    html: `${out}<script src="/npm/jquery/dist/jquery.min.js"></script>${script(`$.getJSON('/data.json', (d) => $('#out').text(d.text))`)}`,
    parameters: { ajax_wait: 'true' },
  },
  htmx: {
    html: `<script src="/npm/htmx.org/dist/htmx.min.js"></script><div hx-get="/fragment" hx-trigger="load">x</div>`,
    parameters: { wait_for_selector: '#done' },
  },
  // Components
  'web-component': {
    html: `${WEB_COMPONENT}<own-card><p>slotted</p><b slot="end">end</b></own-card>`,
  },
  'declarative-shadow': {
    html: `<div><template shadowrootmode="open"><p>compatible page is done</p></template></div>`,
  },
  template: {
    html: `<body><template><p id="out"></p></template>${script('document.body.append(document.querySelector("template").content.cloneNode(true));' + show)}`,
  },
  dialog: {
    html: `<dialog><p id="out"></p></dialog>${script(`document.querySelector('dialog').showModal(); ${show}`)}`,
  },
  popover: { html: `<div popover id="p">${out}</div>${script(`p.showPopover(); ${show}`)}` },
  'view-transition': {
    html: `${out}${script(`document.startViewTransition(() => { ${showLate} })`)}`,
    parameters: late,
  },
  // Loading
  'document-write': { html: script(`document.write('<p>' + ${done} + '</p>')`) },
  'document-open': {
    html: script(
      `onload = () => { document.open(); document.write('<p>' + ${done} + '</p>'); document.close(); }`,
    ),
  },
  modules: {
    html: `${IMPORT_MAP}${out}${module(`import { text } from 'own'; const { more } = await import('/module.js'); document.querySelector('#out').textContent = text + more;`)}`,
  },
  wasm: {
    html: `${out}${script(`WebAssembly.instantiate(new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,127,3,2,1,0,7,5,1,1,97,0,0,10,6,1,4,0,65,42,11])).then(({ instance }) => { if (instance.exports.a() === 42) { ${showLate} } })`)}`,
    parameters: late,
  },
  fetch: {
    html: `${out}${script(`fetch('/data.json').then((r) => r.json()).then((d) => { out.textContent = d.text })`)}`,
    parameters: { ajax_wait: 'true' },
  },
  xhr: {
    html: `${out}${script(`const x = new XMLHttpRequest(); x.open('GET', '/data.json', false); x.send(); out.textContent = JSON.parse(x.responseText).text`)}`,
  },
  preload: {
    html: `<link rel="preload" href="/data.json" as="fetch" crossorigin><link rel="prefetch" href="/static"><script type="speculationrules">{"prerender":[{"urls":["/static"]}]}</script>${out}${script(show)}`,
  },
  'idle-callback': {
    html: `${out}${script(`requestIdleCallback(() => { ${showLate} })`)}`,
    parameters: late,
  },
  'animation-frame': {
    html: `${out}${script(`let n = 0; const f = () => ++n < 5 ? requestAnimationFrame(f) : ${showLate}; f()`)}`,
    parameters: late,
  },
  'mutation-observer': {
    html: `${out}${script(`new MutationObserver(() => { ${showLate} }).observe(document.body, { childList: true }); document.body.append('x')`)}`,
    parameters: late,
  },
  'infinite-scroll': {
    html: `<meta name="viewport" content="width=device-width"><style>p{height:400px}</style><div id="feed"></div><i id="end">.</i>${script(`let n = 0; const more = () => { for (let k = 0; k < 5; k++) { n++; feed.append(Object.assign(document.createElement('p'), { textContent: n === 20 ? ${done} : n })); } };
      new IntersectionObserver(([e]) => { if (e.isIntersecting && n < 30) more(); }).observe(end);`)}`,
    parameters: { scroll: 'true', scroll_interval: '5' },
  },
  'lazy-image': {
    html: `<div style="height:5000px"></div>${out}<img loading="lazy" src="/image.png" onload="${show.replaceAll('"', "'")}">`,
    parameters: { scroll: 'true', scroll_interval: '4' },
  },
  // Channels
  websocket: {
    html: `${out}${script(`new WebSocket('ws://' + location.host).onmessage = ({ data }) => { out.innerHTML = '<b id="done">' + data + '</b>' }`)}`,
    parameters: late,
  },
  'event-source': {
    html: `${out}${script(`new EventSource('/events').onmessage = ({ data }) => { out.innerHTML = '<b id="done">' + data + '</b>' }`)}`,
    parameters: late,
  },
  worker: {
    html: `${out}${script(`new Worker('/worker.js').onmessage = ({ data }) => { out.innerHTML = '<b id="done">' + data + '</b>' }`)}`,
    parameters: late,
  },
  'shared-worker': {
    html: `${out}${script(`new SharedWorker('/shared-worker.js').port.onmessage = ({ data }) => { out.innerHTML = '<b id="done">' + data + '</b>' }`)}`,
    parameters: late,
  },
  'service-worker': { html: SW_PAGE, parameters: { page_wait: '1500' } },
  'frame-message': {
    html: `${out}<iframe src="/frame"></iframe>${script(`onmessage = ({ data }) => { out.innerHTML = '<b id="done">' + data + '</b>' }`)}`,
    parameters: late,
  },
  'frame-content': {
    html: '<iframe src="/static"></iframe>',
    parameters: { include_frames: 'true' },
  },
  // Storage
  storage: {
    html: `${out}${script(`localStorage.a = sessionStorage.a = 1; document.cookie = 'a=1'; if (localStorage.a + sessionStorage.a + document.cookie === '11a=1') ${show}`)}`,
  },
  'cookie-wall': {
    html: script(
      `if (document.cookie) document.write('<p>' + ${done} + '</p>'); else { document.cookie = 'seen=1'; location.reload(); }`,
    ),
  },
  'indexed-db': {
    html: `${out}${script(`indexedDB.open('a').onsuccess = () => { ${showLate} }`)}`,
    parameters: late,
  },
  // Obstacles
  csp: {
    html: `${out}<script nonce="n">${show}</script>`,
    headers: {
      'content-security-policy': "default-src 'none'; script-src 'nonce-n'; sandbox allow-scripts",
    },
  },
  'trusted-types': {
    html: `${out}<script>${show}</script>`,
    headers: {
      'content-security-policy': "require-trusted-types-for 'script'; trusted-types 'none'",
    },
  },
  'opener-policy': {
    html: `${out}${script(show)}`,
    headers: {
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-embedder-policy': 'require-corp',
    },
  },
  dialogs: { html: `${out}${script(`alert(1); confirm(2); prompt(3); print(); ${show}`)}` },
  'replaced-prototypes': {
    html: `${out}${script(`${show}; Array.prototype.toJSON = () => 'x'; Object.prototype.get = 1; JSON.stringify = eval = document.querySelectorAll = null; Object.freeze(Document.prototype);`)}`,
  },
  'clobbered-document': {
    html: `${out}<img name="documentElement"><img name="doctype"><form id="body" name="querySelectorAll"></form>${script(`document.getElementById('out').textContent = ${done}`)}`,
  },
  'broken-html': {
    html: `<table><tr><td><p>compatible page is <b></table>done</b> ${out}${script(show)}<!-- <div`,
  },
  'console-flood': {
    html: `${out}${script(`for (let n = 0; n < 2000; n++) console.log('x'.repeat(1000)); ${show}`)}`,
  },
  'click-to-show': {
    html: `${out}<button onclick="${show.replaceAll('"', '&quot;')}">show</button>`,
    parameters: { css_click_selector: 'button' },
  },
  'consent-banner': {
    html: `<div id="banner" style="position:fixed;inset:0;background:#fff"><button id="accept" onclick="banner.remove()">ok</button></div>${out}<button id="more" onclick="${show.replaceAll('"', '&quot;')}">more</button>`,
    parameters: { css_click_selector: '#accept|#more' },
  },
  webgl: {
    html: `${out}${script(`const gl = document.createElement('canvas').getContext('webgl2'); gl.clearColor(0, 1, 0, 1); gl.clear(gl.COLOR_BUFFER_BIT);
      const pixel = new Uint8Array(4); gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel); if (pixel[1] === 255) ${show}`)}`,
  },
  'leads-to-file': {
    html: `${out}${script(`${show}; setTimeout(() => { location = '/file.bin' }, 50)`)}`,
    parameters: { page_wait: '300' },
  },
};

/** What the pages load: media type and content by path. */
export function compatibleAssets(): Readonly<Record<string, readonly [string, string | Buffer]>> {
  return {
    '/data.json': ['application/json', JSON.stringify({ text: DONE })],
    '/fragment': ['text/html', `<b id="done">${DONE}</b>`],
    '/module.js': [
      'text/javascript',
      `export const text = 'compatible page '; export const more = 'is done';`,
    ],
    '/worker.js': ['text/javascript', `postMessage(${done})`],
    '/shared-worker.js': [
      'text/javascript',
      `onconnect = ({ ports: [port] }) => port.postMessage(${done})`,
    ],
    '/service-worker.js': [
      'text/javascript',
      `onactivate = (e) => e.waitUntil(clients.claim()); onfetch = (e) => { if (e.request.url.endsWith('/from-worker')) e.respondWith(new Response(' ')); }`,
    ],
    '/frame': ['text/html', script(`parent.postMessage(${done}, '*')`)],
    '/image.png': ['image/png', Buffer.from(PIXEL, 'base64')],
    '/react.js': ['text/javascript', reactBundle()],
    '/svelte.js': ['text/javascript', svelteComponent()],
    '/file.bin': ['application/octet-stream', Buffer.from([0, 1, 2])],
  };
}
