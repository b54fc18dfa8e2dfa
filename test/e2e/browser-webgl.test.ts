import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import {
  bytesRoute,
  chromiumsOf,
  crawlInBrowser,
  descendants,
  htmlRoute,
  otherAccount,
} from '../support/browser-crawls.ts';
import { eventually } from '../support/eventually.ts';
import { type Site, type SiteRoute, startSite } from '../support/site.ts';

/** Functions that the pages use: WebGL draws a triangle over the whole canvas. */
const TOOLS = `
  const say = (text) => { document.querySelector('#out').textContent = text; };
  const open = (canvas, kind) => canvas.getContext(kind, { preserveDrawingBuffer: true });
  function draw(gl, fragment) {
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, 'attribute vec2 at; void main() { gl_Position = vec4(at, 0, 1); }'], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }`;

/** Green left of 50 pixels, else red. */
const HALVES =
  'void main() { gl_FragColor = gl_FragCoord.x < 50.0 ? vec4(0, 1, 0, 1) : vec4(1, 0, 0, 1); }';
/** No frame of it is ever done. */
const ENDLESS =
  'precision highp float; uniform float u; void main() { float a = u; for (int i = 0; i < 2000000000; i++) { for (int k = 0; k < 2000000000; k++) a = fract(a * 1.7 + 0.3); } gl_FragColor = vec4(a); }';

/** Tells when the drawing of the page was ended. */
const TELL_LOSS = `c.addEventListener('webglcontextlost', () => { say('lost'); document.querySelector('#out').dataset.done = ''; });`;

const page = (script: string): SiteRoute =>
  htmlRoute(
    `<body style="margin: 0"><canvas id="c" width="100" height="100" style="display: block"></canvas><p id="out">nothing</p><script>${TOOLS} ${script}</script>`,
  );

const drawn = (kind: string): SiteRoute =>
  page(`const gl = open(c, '${kind}');
    draw(gl, '${HALVES}');
    const pixels = new Uint8Array(8);
    gl.readPixels(49, 10, 2, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    say('drawn: ' + pixels.join());`);

let picture = Buffer.alloc(0);

const routes: Readonly<Record<string, SiteRoute>> = {
  '/webgl': drawn('webgl'),
  '/webgl2': drawn('webgl2'),
  '/plain': htmlRoute('<p id="out"></p><script>out.textContent = "made by " + "script";</script>'),
  '/has':
    page(`say('webgl: ' + !!open(c, 'webgl') + ', webgl2: ' + !!open(document.createElement('canvas'), 'webgl2'));
    document.querySelector('#out').dataset.done = '';`),
  '/names': page(`const names = (gl) => { const info = gl.getExtension('WEBGL_debug_renderer_info');
      return [gl.VENDOR, gl.RENDERER, info.UNMASKED_VENDOR_WEBGL, info.UNMASKED_RENDERER_WEBGL].map((each) => gl.getParameter(each)).join('; '); };
    const worker = new Worker(URL.createObjectURL(new Blob(['const names = ' + names + '; postMessage(names(new OffscreenCanvas(1, 1).getContext("webgl")))'])));
    worker.onmessage = async ({ data }) => {
      const adapter = await navigator.gpu?.requestAdapter();
      say([data, names(open(c, 'webgl')), names(open(document.createElement('canvas'), 'webgl2')), 'WebGPU: ' + (adapter ?? 'none')].join(' | '));
      document.querySelector('#out').dataset.done = '';
    };`),
  '/picture.jpg': (request, response, url) =>
    bytesRoute('image/jpeg', picture)(request, response, url),
  '/look': htmlRoute(`<p id="out"></p><img id="i" src="/picture.jpg"><script>i.onload = () => {
    const canvas = document.createElement('canvas'); canvas.width = 200; canvas.height = 100;
    const pen = canvas.getContext('2d'); pen.drawImage(i, 0, 0);
    const at = (x) => [...pen.getImageData(x, 50, 1, 1).data.slice(0, 3)];
    out.textContent = JSON.stringify([at(20), at(80), at(150)]); out.dataset.done = ''; };</script>`),
  '/many': page(`let made = 0;
    for (let n = 0; n < 100; n += 1) { const gl = open(document.createElement('canvas'), 'webgl'); if (gl) { made += 1; gl.clear(gl.COLOR_BUFFER_BIT); } }
    say('contexts: ' + made);`),
  '/textures':
    page(`const gl = open(c, 'webgl2'); ${TELL_LOSS} const bytes = new Uint8Array(4096 * 4096 * 4).fill(7); const kept = [];
    (function more() { const texture = gl.createTexture(); kept.push(texture); gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 4096, 4096, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes); gl.finish(); setTimeout(more, 5); })();`),
  '/endless': page(`const gl = open(c, 'webgl'); say('webgl: ' + !!gl);
    ${TELL_LOSS} draw(gl, '${ENDLESS}'); gl.flush();`),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({
    env: { NETWORK_ALLOW: site.host, CRAWL_TIMEOUT_SECONDS: '180', BROWSER_PAGES: '3' },
  });
  await crawl('/plain');
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const DONE = { wait_for_selector: '[data-done]' };
/** The same, for three times as long: a busy machine may take minutes for what a page draws. */
const DONE_LATE = { wait_for_selector: '[data-done]?|[data-done]?|[data-done]' };

async function crawl(path: string, parameters: Record<string, string> = {}, own = app) {
  const result = await crawlInBrowser(own, site.url + path, parameters);
  return { ...result, text: /id="out"[^>]*>([^<]*)</.exec(result.body)?.[1] };
}

async function colours(parameters: Record<string, string> = {}): Promise<number[][]> {
  const result = await crawl('/webgl', {
    screenshot: 'true',
    mode: 'viewport',
    width: '400',
    height: '300',
    ...parameters,
  });
  picture = Buffer.from(await (await fetch(result.screenshot_url)).arrayBuffer());
  return JSON.parse((await crawl('/look', DONE)).text ?? '');
}

test.each(['/webgl', '/webgl2'])('a page whose text comes from %s is crawled', async (path) => {
  expect(await crawl(path)).toMatchObject({
    cb_status: 200,
    text: 'drawn: 0,255,0,255,255,0,0,255',
  });
});

test('a picture shows what WebGL has drawn', async () => {
  const [green, red, white] = (await colours()).map((colour) =>
    colour.map((value) => Math.round(value / 64)),
  );
  expect({ green, red, white }).toEqual({ green: [0, 4, 0], red: [4, 0, 0], white: [4, 4, 4] });
});

test('it says the same by every way: the software that draws, no WebGPU', async () => {
  const { text = '' } = await crawl('/names', DONE);
  const [worker, ...others] = text.split(' | ');
  expect(worker).toContain('SwiftShader');
  expect(others).toEqual([worker, worker, 'WebGPU: none']);
});

test('the operator can leave it out', async () => {
  await using own = await startApp({ env: { NETWORK_ALLOW: site.host, CHROMIUM_WEBGL: 'off' } });
  expect((await crawl('/has', DONE, own)).text).toBe('webgl: false, webgl2: false');
});

describe('a hostile page', () => {
  test('that makes 100 contexts gets no more than a browser gives', async () => {
    expect(await crawl('/many')).toMatchObject({ cb_status: 200, text: 'contexts: 100' });
    expect(await crawl('/webgl')).toMatchObject({ text: expect.stringContaining('drawn: ') });
  });

  test('that fills textures without end costs its own drawing, and no other page', async () => {
    const other = await otherAccount(app);
    const hostile = crawl('/textures', DONE_LATE);
    // On a busy machine the drawing may be ended before it has filled the memory.
    await eventually(() => expect(app.log.join('')).toMatch(/too much memory|draw without end/));
    for (let n = 0; n < 3; n += 1) {
      expect(await crawl('/plain', { token: other })).toMatchObject({ text: 'made by script' });
    }
    expect(await hostile).toMatchObject({ cb_status: 200, text: 'lost' });
    expect(await crawl('/webgl')).toMatchObject({ text: expect.stringContaining('drawn: ') });
  });

  test('that draws without end holds up pictures of others for seconds only', async () => {
    const other = await otherAccount(app);
    const shot = { token: other, screenshot: 'true', mode: 'viewport' };
    const hostile = crawl('/endless', DONE_LATE);
    await eventually(() => expect(site.hits('/endless')).toBe(1));
    const results = await Promise.all([crawl('/plain', shot), crawl('/plain', shot)]);
    for (const result of results) {
      expect(result).toMatchObject({ cb_status: 200, text: 'made by script' });
      expect(result.screenshot_url).toMatch(/^http/);
    }
    expect(await hostile).toMatchObject({ cb_status: 200, text: 'lost' });
    expect(await crawl('/webgl')).toMatchObject({ text: expect.stringContaining('drawn: ') });
  });
});

/** Longer than the service takes to look at Chromium's processes, on a busy machine too. */
const LOOKED_MS = 2_000;

test('when the process that draws crashes again and again, pages continue, and later ones have WebGL', async () => {
  const other = await otherAccount(app);
  const shot = { token: other, page_wait: '12000', screenshot: 'true' };
  const running = crawl('/plain', shot);
  await eventually(() => expect(drawingProcesses()).not.toEqual([]));
  // Chromium draws no WebGL any more when this process has ended three times.
  let ended: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    await crawl('/webgl');
    // The service knows the processes that it has looked at, which it does every half second.
    await sleep(LOOKED_MS);
    const ending = drawingProcesses();
    for (const pid of ending) process.kill(pid, 'SIGKILL');
    ended = [...ended, ...ending];
    await eventually(() =>
      expect(drawingProcesses().some((pid) => ended.includes(pid))).toBe(false),
    );
  }
  const plain = await running;
  expect(plain).toMatchObject({ cb_status: 200, text: 'made by script' });
  expect(plain.screenshot_url).toMatch(/^http/);
  await eventually(async () => expect((await crawl('/webgl')).text).toMatch(/^drawn: /));
});

function drawingProcesses(): number[] {
  return chromiumsOf(process.pid).flatMap((pid) => descendants(pid, /--type=gpu-process/));
}
