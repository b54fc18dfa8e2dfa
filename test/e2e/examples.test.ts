import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { isLong } from '../support/length.ts';
import { freePort } from '../support/listen.ts';
import { pageHtml, type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const examples = resolve(import.meta.dirname, '../../examples');
const run = promisify(execFile);

const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a', 'hex'),
  // Bytes that are no UTF-8, many of them.
  randomBytes(5_000),
]);

/** Whether a command runs here. A test without its tools is skipped and named on standard error. */
function has(example: string, ...commands: readonly (readonly string[])[]): boolean {
  for (const [command = '', ...args] of commands) {
    try {
      execFileSync(command, args, { stdio: 'ignore' });
    } catch {
      // Absent or broken alike: the example cannot run.
      process.stderr.write(
        `SKIPPED: examples/${example}, for "${[command, ...args].join(' ')}" does not work here\n`,
      );
      return false;
    }
  }
  return true;
}

const hasPython = has('python', ['python3', '-c', 'import ssl']);
const hasGrpcPython = has(
  'grpc-python',
  ['python3', '-c', 'import grpc'],
  [
    'sh',
    '-c',
    '(command -v protoc && command -v grpc_python_plugin) || python3 -m grpc_tools.protoc --version',
  ],
);
// Where Debian keeps the sources of Go libraries.
const goPath = process.env.GOPATH ?? '/usr/share/gocode';
const hasGo = has(
  'grpc-go',
  ['go', 'version'],
  ['test', '-d', `${goPath}/src/google.golang.org/grpc`],
  ['protoc', '--version'],
  ['protoc-gen-go', '--version'],
  ['protoc-gen-go-grpc', '--version'],
);

// Where Debian keeps the jars.
const jars = '/usr/share/java';
const hasJava = has(
  'grpc-java',
  ['javac', '-version'],
  ['protoc', '--version'],
  ['sh', '-c', 'command -v grpc_java_plugin'],
  ...[
    'grpc-netty',
    'protobuf',
    'netty-all',
    'perfmark-api',
    'gson',
    'geronimo-annotation-1.3-spec',
  ].map((name) => ['test', '-f', `${jars}/${name}.jar`]),
);

interface Place {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** What the example prints when it is run as a user would run it. */
async function outputOf(
  app: TestApp,
  command: string,
  args: readonly string[],
  place: Place = {},
): Promise<string> {
  const { stdout } = await run(command, args, {
    cwd: place.cwd ?? examples,
    env: {
      ...process.env,
      BASE: app.url,
      ADDRESS: `127.0.0.1:${app.port}`,
      TOKEN: NORMAL,
      ...place.env,
    },
  });
  return stdout;
}

const RID = '[0-9a-f]{24}';

/** What the two REST examples print of one page. */
function onePage(site: Site, page: number): RegExp {
  return new RegExp(
    `^pushed ${site.url}/page/${page} as ${RID}\ncrawled: cb_status 200, original_status 200\ntitle: Page ${page}\n$`,
  );
}

/** What the gRPC examples print of two pages, whatever the spelling of the code. */
function twoPages(site: Site): RegExp {
  const pushed = (page: number): string => `pushed ${site.url}/page/${page} as ${RID}\n`;
  const crawled = (page: number): string => `crawled: cb_status 200, title: Page ${page}\n`;
  return new RegExp(
    `^${pushed(1)}${pushed(2)}${crawled(1)}${crawled(2)}expected error: (NotFound|NOT_FOUND), reason crawler_not_found\n$`,
  );
}

test('node: a URL is pushed and its result read over REST', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const args = ['node/crawl.mjs', `${site.url}/page/1`];
  expect(await outputOf(app, process.execPath, args)).toMatch(onePage(site, 1));
  // Its crawler exists by now.
  expect(await outputOf(app, process.execPath, args)).toMatch(onePage(site, 1));
});

test.skipIf(!hasPython)('python: a URL is pushed and its result read over REST', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const output = await outputOf(app, 'python3', ['python/crawl.py', `${site.url}/page/2`]);
  expect(output).toMatch(onePage(site, 2));
});

test('grpc-node: URLs are streamed and their results read', async () => {
  await using site = await startSite();
  await using app = await startApp();
  const targets = [`${site.url}/page/1`, `${site.url}/page/2`];
  const output = await outputOf(app, process.execPath, ['grpc-node/crawl.ts', ...targets]);
  expect(output).toMatch(twoPages(site));
});

test.skipIf(!hasGrpcPython)('grpc-python: URLs are pushed and their results read', async () => {
  await using site = await startSite();
  await using app = await startApp();
  await using generated = await temporaryFolder();
  await run(join(examples, 'grpc-python/generate.sh'), [generated.path]);
  const output = await outputOf(
    app,
    'python3',
    ['grpc-python/crawl.py', `${site.url}/page/1`, `${site.url}/page/2`],
    { env: { PYTHONPATH: `${generated.path}:${process.env.PYTHONPATH ?? ''}` } },
  );
  expect(output).toMatch(twoPages(site));
});

// Go compiles grpc-go at its first run, Java all that is generated.
test.skipIf(!hasGo || !isLong)('grpc-go: URLs are pushed and their results read', async () => {
  await using site = await startSite();
  await using app = await startApp();
  await using generated = await temporaryFolder();
  await run(join(examples, 'grpc-go/generate.sh'), [generated.path]);
  const output = await outputOf(
    app,
    'go',
    ['run', 'grpc-go/main.go', `${site.url}/page/1`, `${site.url}/page/2`],
    {
      env: {
        GO111MODULE: 'off',
        GOPATH: `${generated.path}:${goPath}`,
      },
    },
  );
  expect(output).toMatch(twoPages(site));
});

test.skipIf(!hasJava || !isLong)('grpc-java: URLs are pushed and their results read', async () => {
  await using site = await startSite();
  await using app = await startApp();
  await using generated = await temporaryFolder();
  const env = { ...process.env, CLASSPATH: `${jars}/*` };
  await run(join(examples, 'grpc-java/generate.sh'), [generated.path], { env });
  const classes = `${generated.path}/classes:${jars}/*`;
  const args = ['-cp', classes, 'Crawl', `${site.url}/page/1`, `${site.url}/page/2`];
  expect(await outputOf(app, 'java', args)).toMatch(twoPages(site));
});

// What docs/clients.md says of a language is what its example does.
test.each(['grpc-go', 'grpc-java', 'grpc-python'])(
  'docs/clients.md has the commands of %s',
  async (name) => {
    const [readme = '', docs] = await Promise.all(
      [`${name}/README.md`, '../docs/clients.md'].map((file) =>
        readFile(join(examples, file), 'utf8'),
      ),
    );
    const [, commands = ''] = /```sh\n(.*?)```/s.exec(readme) ?? [];
    expect(commands).toContain(`${name}/generate.sh`);
    expect(docs).toContain(commands);
  },
);

test('the handler in docs/webhooks.md is the example', async () => {
  const [example, docs] = await Promise.all(
    ['node/webhook-receiver.mjs', '../docs/webhooks.md'].map((name) =>
      readFile(join(examples, name), 'utf8'),
    ),
  );
  expect(docs).toContain(`\`\`\`js\n${example}\`\`\``);
});

/** Runs a receiver; `lines` is what it printed. */
async function startReceiverExample(
  command: string,
  file: string,
  port: number,
  secret: string,
): Promise<AsyncDisposable & { readonly url: string; readonly lines: () => string[] }> {
  const child: ChildProcess = spawn(command, [file], {
    cwd: examples,
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const url = `http://127.0.0.1:${port}/`;
  await eventually(() => fetch(url, { method: 'POST' }));
  return {
    url,
    lines: () => printed.split('\n').filter((line) => line !== ''),
    async [Symbol.asyncDispose]() {
      const exited = new Promise((done) => child.once('exit', done));
      child.kill();
      await exited;
    },
  };
}

const receivers = [
  { name: 'node', command: process.execPath, file: 'node/webhook-receiver.mjs', runs: true },
  { name: 'python', command: 'python3', file: 'python/webhook_receiver.py', runs: hasPython },
];

for (const { name, command, file, runs } of receivers) {
  test.skipIf(!runs)(
    `${name}: the receiver takes pictures, compressed pages and JSON, each once, and no test and nothing that is not genuine`,
    async () => {
      await using site = await startSite({
        routes: {
          '/picture.png': (_request, response) => {
            response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
          },
        },
      });
      await using app = await startApp();
      const port = await freePort();
      const settings = { callback_url: `http://127.0.0.1:${port}/` };
      const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'example', ...settings });
      const secret: string = made.json.crawler.webhook_secret;
      await using receiver = await startReceiverExample(command, file, port, secret);
      const crawler = await createCrawler(app, 'example', settings);
      const page = pageHtml('1', 100_000);
      const expected = [
        `${await crawler.push(`${site.url}/picture.png`)} 200 image/png ${PNG.length} ${site.url}/picture.png`,
        `${await crawler.push(`${site.url}/page/1?size=100000`)} 200 text/plain; charset=utf-8 ${page.length} ${site.url}/page/1?size=100000`,
      ];
      const json = [
        await crawler.push(`${site.url}/picture.png?2`, '&format=json'),
        await crawler.push(`${site.url}/page/2`, '&format=json'),
      ];
      await eventually(async () =>
        expect((await crawler.details()).activity).toMatchObject({
          completed: 4,
          deliveries_pending: 0,
        }),
      );
      await eventually(() => expect(receiver.lines()).toHaveLength(4));
      expect(receiver.lines()).toEqual(expect.arrayContaining(expected));
      for (const rid of json) {
        expect(receiver.lines()).toContainEqual(expect.stringMatching(`^${rid} 200 gzip/json `));
        const { json: delivery } = await app.rest('GET', `${crawler.path}/deliveries/${rid}`);
        expect(delivery.attempts).toMatchObject([{ status: 204 }]);
      }
      const tried = await app.rest('POST', `${crawler.path}/test_delivery`);
      expect(tried.json).toMatchObject({ acknowledged: true, attempt: { status: 204 } });
      const forged = await fetch(receiver.url, {
        method: 'POST',
        headers: {
          rid: 'forged',
          'webhook-id': 'forged',
          'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
          'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
        },
        body: 'forged',
      });
      expect(forged.status).toBe(401);
      // What is pushed after the test delivery is printed after it.
      const last = await crawler.push(`${site.url}/page/3`);
      await eventually(() => expect(receiver.lines().at(-1)).toContain(last));
      expect(receiver.lines()).toHaveLength(5);
    },
  );

  test.skipIf(!runs)(
    `${name}: the receiver takes each result of a POST of several, and tells a completed batch`,
    async () => {
      await using site = await startSite({
        routes: {
          '/picture.png': (_request, response) => {
            response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
          },
        },
      });
      await using app = await startApp();
      const port = await freePort();
      const settings = {
        callback_url: `http://127.0.0.1:${port}/`,
        deliver_batch: { max_results: 20, max_ms: 10_000 },
      };
      const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'example', ...settings });
      const secret: string = made.json.crawler.webhook_secret;
      await using receiver = await startReceiverExample(command, file, port, secret);
      const crawler = await createCrawler(app, 'example', settings);
      const urls = ['picture.png', ...Array.from({ length: 19 }, (_, n) => `page/${n}`)].map(
        (path) => `${site.url}/${path}`,
      );
      const items = urls.map((url) => ({ url, batch: 'monday' }));
      const { json } = await app.rest('POST', `${crawler.path}/push_batch`, { items });
      await app.rest('POST', `${crawler.path}/batches/monday/close`);
      await eventually(() => expect(receiver.lines()).toHaveLength(21));
      for (const [n, { rid }] of json.results.entries()) {
        expect(receiver.lines()).toContainEqual(
          expect.stringMatching(new RegExp(`^${rid} 200 application/json \\d+ ${urls[n]}$`)),
        );
      }
      expect(receiver.lines()).toContainEqual(
        expect.stringMatching(/^[0-9a-f]{24} batch\.completed \{.*"batch": ?"monday"/),
      );
    },
  );

  test.skipIf(!runs)(
    `${name}: the receiver takes no secret that anybody could sign by`,
    async () => {
      for (const secret of ['', 'whsec_', 'whsec_???', 'whsec_YQ==']) {
        const env = { ...process.env, PORT: '0', WEBHOOK_SECRET: secret };
        // One that starts is stopped, without that text.
        const starting = run(command, [file], { cwd: examples, env, timeout: 180_000 });
        await expect(starting).rejects.toThrow('WEBHOOK_SECRET must be the webhook_secret');
      }
    },
  );
}
