import { writeFile } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { startApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import { listen } from '../support/listen.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { TLS_FIXTURE } from '../support/tls-fixture.ts';

test('pages and all they load come by HTTP/2 over one connection through the proxy of the page', async () => {
  await using folder = await temporaryFolder();
  // The certificate of the tests is signed by nobody that a browser knows.
  const wrapper = join(folder.path, 'chromium');
  const real = await findChromium('');
  await writeFile(wrapper, `#!/bin/sh\nexec ${real} --ignore-certificate-errors "$@"\n`, {
    mode: 0o700,
  });
  const versions = new Set<string>();
  let connections = 0;
  const server = createSecureServer({ ...TLS_FIXTURE, allowHTTP1: true }, (request, response) => {
    versions.add(request.httpVersion);
    const isPage = request.url === '/';
    response.setHeader('content-type', isPage ? 'text/html' : 'text/javascript');
    const scripts = Array.from({ length: 12 }, (_, n) => `<script src="/${n}.js"></script>`);
    response.end(isPage ? `<p>${scripts.join('')}</p>` : 'document.write("loaded ")');
  });
  server.on('sessionError', () => undefined);
  server.on('secureConnection', () => {
    connections += 1;
  });
  await using open = await listen(server);
  await using app = await startApp({
    env: {
      NETWORK_ALLOW: `127.0.0.1:${open.port}`,
      CHROMIUM_PATH: wrapper,
      CHROMIUM_SANDBOX: 'off',
    },
  });
  const { body } = await crawlInBrowser(app, `https://127.0.0.1:${open.port}/`);
  expect(body.split('loaded ')).toHaveLength(13);
  expect(versions).toEqual(new Set(['2.0']));
  // A page may open a second one before it knows that the first is enough.
  expect(connections).toBeLessThanOrEqual(2);
});
