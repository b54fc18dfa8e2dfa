import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build, stop } from 'esbuild';
import { afterAll, expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { byLength } from '../support/length.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = resolve(import.meta.dirname, '../..');
const modules = join(root, 'node_modules');
const run = promisify(execFile);
const typescript5 = join(root, 'test', 'support', 'typescript-5.mjs');

/** A generator of clients: how it is called, and a program over what it writes. */
interface Generator {
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Defines the calls of the story. They return the status with the data of a reply. */
  readonly calls: string;
}

// The address is that of the document, and the types are the generated ones throughout.
const generators: Readonly<Record<string, Generator>> = {
  '@hey-api/openapi-ts': {
    // Its program starts another one, which would not get the options of Node.
    args: ['@hey-api/openapi-ts/dist/run.mjs', '-i', 'openapi.json', '-o', 'generated'],
    environment: { NODE_OPTIONS: `--import=${typescript5}` },
    calls: `import * as api from './generated';
import { client } from './generated/client.gen';
client.setConfig({ auth: token });
const create = async (name: string, concurrency: number) => {
  const { response, data, error } = await api.createCrawler({ path: { token }, body: { name, concurrency } });
  return { status: response?.status, name: data?.crawler?.name, concurrency: data?.crawler?.concurrency, code: error?.code };
};
const push = async (crawler: string, url: string) => {
  const { data } = await api.pushOrCrawl({ query: { crawler, url, callback: true } });
  return typeof data === 'object' && data !== null && 'rid' in data ? String(data.rid) : '';
};
const find = async (name: string, rid: string) =>
  (await api.findJob({ path: { token, name, rid } })).data?.status;
const result = async (rid: string) => {
  const { response, data } = await api.getResult({ query: { rid } });
  return { status: response?.status, page: String(data) };
};
const failure = async (name: string) => {
  const { response, error } = await api.getCrawler({ path: { token, name } });
  return { status: response?.status, code: error?.code, text: error?.error };
};
`,
  },
  oazapfts: {
    args: ['oazapfts/dist/cli.js', 'openapi.json', 'generated.ts'],
    calls: `import * as api from './generated';
api.defaults.headers = { authorization: \`Bearer \${token}\` };
const create = async (name: string, concurrency: number) => {
  const reply = await api.createCrawler(token, { name, concurrency });
  if (reply.status !== 200) return { status: reply.status, code: reply.data.code };
  return { status: reply.status, name: reply.data.crawler?.name, concurrency: reply.data.crawler?.concurrency };
};
const push = async (crawler: string, url: string) => {
  const reply = await api.pushBatch(token, crawler, { items: [{ url }] });
  return reply.status === 200 ? (reply.data.results[0]?.rid ?? '') : '';
};
const find = async (name: string, rid: string) => {
  const reply = await api.findJob(token, name, rid);
  return reply.status === 200 ? reply.data.status : undefined;
};
const result = async (rid: string) => {
  const reply = await api.getResult({ rid });
  return { status: reply.status, page: String(reply.data) };
};
const failure = async (name: string) => {
  const reply = await api.getCrawler(token, name);
  return reply.status === 404 ? { status: reply.status, code: reply.data.code, text: reply.data.error } : undefined;
};
`,
  },
  orval: {
    args: ['orval/dist/bin/orval.mjs', '--config', 'orval.config.mjs'],
    calls: `import * as api from './generated';
const options = { headers: { authorization: \`Bearer \${token}\` } };
const create = async (name: string, concurrency: number) => {
  const reply = await api.createCrawler(token, { name, concurrency }, options);
  if (reply.status !== 200) return { status: reply.status, code: reply.data.code };
  return { status: reply.status, name: reply.data.crawler?.name, concurrency: reply.data.crawler?.concurrency };
};
const push = async (crawler: string, url: string) => {
  const reply = await api.pushOrCrawl({ crawler, url, callback: true }, options);
  return reply.status === 200 && typeof reply.data === 'object' && reply.data !== null && 'rid' in reply.data ? String(reply.data.rid) : '';
};
const find = async (name: string, rid: string) => {
  const reply = await api.findJob(token, name, rid, options);
  return reply.status === 200 ? reply.data.status : undefined;
};
const result = async (rid: string) => {
  const reply = await api.getResult({ rid }, options);
  return { status: reply.status, page: String(reply.data) };
};
const failure = async (name: string) => {
  const reply = await api.getCrawler(token, name, options);
  return reply.status === 404 ? { status: reply.status, code: reply.data.code, text: reply.data.error } : undefined;
};
`,
  },
};

/** Creates a crawler, pushes a page, reads its result, and is refused twice. */
const story = `
const created = await create('shop', 3);
const rid = await push('shop', page);
while ((await find('shop', rid)) === 'QUEUED') await new Promise((done) => setTimeout(done, 20));
const stored = await result(rid);
console.log(JSON.stringify({
  created,
  stored,
  conflict: await create('shop', 4),
  missing: await failure('nothing'),
  unknown: (await result('a'.repeat(24))).status,
}));
`;

afterAll(stop);

test.each(byLength(Object.entries(generators).slice(0, 1), Object.entries(generators)))(
  'a client that %s generates of /openapi.json compiles, crawls a page and gets errors as typed',
  async (_, { args, environment, calls }) => {
    await using site = await startSite();
    await using app = await startApp();
    await using folder = await temporaryFolder();
    const own = (name: string): string => join(folder.path, name);
    await symlink(modules, own('node_modules'));
    await writeFile(own('package.json'), '{"type":"module"}');
    await writeFile(own('openapi.json'), (await app.rest('GET', '/openapi.json')).text);
    await writeFile(
      own('orval.config.mjs'),
      `export default { api: { input: './openapi.json', output: { target: './generated.ts', client: 'fetch', baseUrl: { getBaseUrlFromSpecification: true } } } };`,
    );
    const [program = '', ...options] = args;
    const node = (argv: readonly string[], env = {}) =>
      run(process.execPath, [...argv], { cwd: folder.path, env: { ...process.env, ...env } });
    await node([join(modules, program), ...options], environment);

    await writeFile(
      own('program.ts'),
      `const [token = '', page = ''] = process.argv.slice(2);\n${calls}${story}`,
    );
    const strict = '--noEmit --strict --target es2024 --lib es2024,dom,dom.iterable --types node';
    const compiler = join(dirname(modules), 'node_modules', 'typescript', 'bin', 'tsc');
    const bundled = '--module esnext --moduleResolution bundler program.ts';
    await node([compiler, ...strict.split(' '), ...bundled.split(' ')]).catch(
      (error: { stdout: string }) => {
        throw new Error(error.stdout);
      },
    );

    await build({
      entryPoints: [own('program.ts')],
      outfile: own('program.js'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
    });
    const { stdout } = await node(['program.js', NORMAL, `${site.url}/page/1`]);
    const page = await (await fetch(`${site.url}/page/1`)).text();
    expect(JSON.parse(stdout)).toEqual({
      created: { status: 200, name: 'shop', concurrency: 3 },
      stored: { status: 200, page },
      conflict: { status: 409, code: expect.any(String) },
      missing: { status: 404, code: 'crawler_not_found', text: expect.stringContaining('nothing') },
      unknown: 404,
    });
    expect(await readFile(own('openapi.json'), 'utf8')).toContain(app.url);
  },
);
