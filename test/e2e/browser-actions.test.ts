import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { type Site, startSite } from '../support/site.ts';

const clicked = (id: string): string => `onclick="out.textContent += '${id} '"`;

const routes = {
  '/buttons': htmlRoute(
    `<p id="out"></p><button id="a" ${clicked('a')}>a</button><button class="b" ${clicked('b')}>b</button>`,
  ),
  '/late-button': htmlRoute(
    `<p id="out"></p><script>setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<button class="b" ${clicked('b').replaceAll("'", '`')}>b</button>'); }, 400);</script>`,
  ),
  '/covered': htmlRoute(
    `<p id="out"></p><button id="a" ${clicked('a')}>a</button><div style="position:fixed;inset:0;background:#fff">banner</div>`,
  ),
  '/hidden': htmlRoute(
    `<p id="out"></p><button id="a" style="display:none" ${clicked('a')}>a</button>`,
  ),
  '/shadow': htmlRoute(
    `<p id="out"></p><div id="host"></div><script>
      const root = host.attachShadow({ mode: 'open' });
      root.innerHTML = '<button id="inner">inner</button>';
      root.querySelector('#inner').onclick = (event) => { out.textContent = 'inner ' + event.isTrusted; };
    </script>`,
  ),
  '/leads-on': htmlRoute('<a id="next" href="/buttons">next</a>'),
  '/new-tab': htmlRoute('<a id="next" href="/buttons" target="_blank">next</a>'),
  '/new-window': htmlRoute(
    '<button id="next" onclick="window.open(`/buttons`, `x`, `width=300`)">next</button><script>window.open("/feed")</script>',
  ),
  '/fetches': htmlRoute(
    '<p id="out"></p><button id="a" onclick="fetch(`/delay/300`).then(() => { out.textContent = `fetched`; })">a</button>',
  ),
  '/feed': htmlRoute(
    `<style>body{margin:0;height:100vh;overflow:hidden}#box{height:100vh;overflow:auto}p{height:100px}</style>
    <div id="box"></div><script>
      const more = () => { for (let n = 0; n < 20; n++) box.append(Object.assign(document.createElement('p'), { className: 'item' })); };
      more(); box.onscroll = () => { if (box.scrollTop + box.clientHeight > box.scrollHeight - 200) more(); };
    </script>`,
  ),
  '/no-scroll-by': htmlRoute(
    '<div style="height: 20000px"></div><p id="out"></p><script>window.scrollBy = window.eval = undefined; addEventListener("scroll", () => { out.textContent = "scrolled " + Math.round(scrollY); });</script>',
  ),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({ env: { NETWORK_ALLOW: site.host } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, site.url + path, parameters);

describe('css_click_selector', () => {
  test.each([
    // The first of a list that is there, in the order of the list.
    ['.b, body', '<p id="out">b </p>'],
    ['#nowhere, #a', '<p id="out">a </p>'],
    // One after the other.
    ['#a|.b|#a', '<p id="out">a b a </p>'],
  ])('%s clicks as it says', async (selector, expected) => {
    const result = await crawl('/buttons', { css_click_selector: selector });
    expect(result.cb_status).toBe(200);
    expect(result.body).toContain(expected);
  });

  test('waits for the one that is preferred', async () => {
    const { body } = await crawl('/late-button', { css_click_selector: '.b, body' });
    expect(body).toContain('<p id="out">b </p>');
  });

  test('leaves out what may be missing, and fails for what must be there', async () => {
    const [missing, there, failed] = await Promise.all([
      crawl('/buttons', { css_click_selector: '#banner? | #a' }),
      crawl('/late-button', { css_click_selector: '.b?' }),
      crawl('/buttons', { css_click_selector: '#a|#banner' }),
    ]);
    expect(missing).toMatchObject({ cb_status: 200 });
    expect(missing.body).toContain('<p id="out">a </p>');
    expect(there.body).toContain('<p id="out">b </p>');
    expect(failed).toMatchObject({ cb_status: 523, failure: 'selector_not_found' });
    expect(failed.body).toContain('<p id="out">a </p>');
  });

  test.each(['/covered', '/hidden'])(
    'clicks an element that no mouse reaches: %s',
    async (path) => {
      const result = await crawl(path, { css_click_selector: '#a' });
      expect(result).toMatchObject({ cb_status: 200 });
      expect(result.body).toContain('<p id="out">a </p>');
    },
  );

  test('finds what is in a shadow tree, and clicks as a user does', async () => {
    expect((await crawl('/shadow', { css_click_selector: '#inner' })).body).toContain('inner true');
  });

  test('waits for what the click brings', async () => {
    expect(await crawl('/leads-on', { css_click_selector: '#next' })).toMatchObject({
      cb_status: 200,
      url: `${site.url}/buttons`,
    });
    expect((await crawl('/fetches', { css_click_selector: '#a' })).body).toContain('fetched');
  });

  test.each(['/new-tab', '/new-window'])(
    'continues in the tab or window that a click opens: %s',
    async (path) => {
      const result = await crawl(path, { css_click_selector: '#next' });
      expect(result).toMatchObject({ cb_status: 200, url: `${site.url}/buttons` });
      expect((await crawl(path)).url).toBe(site.url + path);
    },
  );

  test('that has a part which is no selector is refused', async () => {
    expect((await crawl('/buttons', { css_click_selector: '#a|[' })).error).toContain(
      'CSS selector',
    );
  });
});

describe('scroll', () => {
  test('moves a box within the page when that is what scrolls', async () => {
    const { body } = await crawl('/feed', { scroll: 'true', scroll_interval: '2' });
    expect(body.split('class="item"').length).toBeGreaterThan(40);
  });

  test('works whatever the page has replaced', async () => {
    const { cb_status: status, body } = await crawl('/no-scroll-by', {
      scroll: 'true',
      scroll_interval: '1',
    });
    expect(status).toBe(200);
    expect(Number(/scrolled (\d+)/.exec(body)?.[1])).toBeGreaterThan(1_000);
  });

  test('works on a phone, too', async () => {
    const { body } = await crawl('/no-scroll-by', {
      scroll: 'true',
      scroll_interval: '1',
      device: 'mobile',
    });
    expect(Number(/scrolled (\d+)/.exec(body)?.[1])).toBeGreaterThan(1_000);
  });
});
