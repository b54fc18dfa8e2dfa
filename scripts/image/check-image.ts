import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Container, runContainer } from './run-container.ts';

/** What an image says of itself, as `buildah inspect` prints it. */
interface Inspected {
  readonly Docker: {
    readonly config: {
      readonly User: string;
      readonly Env: readonly string[];
      readonly Cmd: readonly string[];
      readonly WorkingDir: string;
      readonly Labels: Readonly<Record<string, string>>;
      readonly Healthcheck: { readonly Test: readonly string[] };
    };
  };
}

const NORMAL = 'normal-token-of-the-check';
const JAVASCRIPT = 'javascript-token-of-the-check';
const PORT = '18080';
const BASE = `http://127.0.0.1:${PORT}`;

/**
 * Runs an image as a container runs it, and throws unless it is what it should be. Checks its size,
 * its labels, its health check, a crawl, a crawl in the browser, and its end by SIGTERM.
 */
export async function checkImage(
  buildah: (...args: string[]) => string,
  image: string,
  expected: { readonly hasBrowser: boolean; readonly maxMegabytes: number },
): Promise<void> {
  const { config } = (JSON.parse(buildah('inspect', '--type', 'image', image)) as Inspected).Docker;
  assert.equal(config.User, '10001:10001');
  assert.equal(config.Labels['org.opencontainers.image.version'], image.split(/[:-]/)[2]);
  const [kind, ...health] = config.Healthcheck.Test;
  assert.equal(kind, 'CMD');

  const working = buildah('from', image);
  const data = mkdtempSync(join(tmpdir(), 'queued-crawler-image-'));
  chownSync(data, 10_001, 10_001);
  const root = buildah('mount', working);
  try {
    const megabytes = Number(execFileSync('du', ['-sk', root]).toString().split('\t')[0]) / 1_000;
    assert.ok(megabytes < expected.maxMegabytes, `${image} takes ${megabytes} MB`);
    assert.ok(existsSync(join(root, 'app', 'sbom.cdx.json')));
    assert.ok(readdirSync(join(root, 'var/lib/dpkg/status.d')).includes('libc6'));
    const env = {
      ...Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2))),
      PORT,
      NORMAL_TOKEN: NORMAL,
      JAVASCRIPT_TOKEN: JAVASCRIPT,
      NETWORK_ALLOW: '127.0.0.1',
    } as Record<string, string>;
    const container = runContainer(root, { data, env, workingDir: config.WorkingDir });
    const service = container.run(config.Cmd);
    try {
      await untilHealthy(service, () => container.run(health).ended);
      await checkCrawls(expected.hasBrowser);
    } catch (error) {
      process.stderr.write(service.output());
      throw error;
    }
    service.stop();
    assert.equal(await service.ended, 0);
    console.log(`${image}: ${Math.round(megabytes)} MB; healthy, and crawls as it should`);
  } finally {
    buildah('rm', working);
    rmSync(data, { recursive: true, force: true });
  }
}

async function untilHealthy(
  service: ReturnType<Container['run']>,
  check: () => Promise<number | null>,
): Promise<void> {
  for (let tries = 0; tries < 60; tries++) {
    if ((await check()) === 0) return;
    const ended = await Promise.race([service.ended, wait(500, 'runs')]);
    if (ended !== 'runs') throw new Error(`the service ended with ${ended}`);
  }
  throw new Error('the health check never succeeded');
}

async function checkCrawls(hasBrowser: boolean): Promise<void> {
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<p id=p>plain</p><script>p.textContent = "script " + (1 + 1)</script>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  try {
    const plain = await crawl(NORMAL, url);
    assert.equal(plain.cbStatus, '200');
    assert.match(plain.body, />plain</);
    const shown = await crawl(JAVASCRIPT, url);
    if (hasBrowser) {
      assert.equal(shown.cbStatus, '200');
      assert.match(shown.body, />script 2</);
    } else {
      assert.equal(shown.failure, 'browser_unavailable');
    }
  } finally {
    site.closeAllConnections();
    site.close();
  }
}

async function crawl(
  token: string,
  url: string,
): Promise<{ cbStatus: string | null; failure: string | null; body: string }> {
  const query = new URLSearchParams({ token, url });
  const response = await fetch(`${BASE}/?${query}`);
  return {
    cbStatus: response.headers.get('cb_status'),
    failure: response.headers.get('failure'),
    body: await response.text(),
  };
}
