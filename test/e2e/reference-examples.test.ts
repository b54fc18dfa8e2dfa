import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error -- a script of the page, without types
import { requestOf } from '../../src/rest/reference/call.js';
// @ts-expect-error -- a script of the page, without types
import { LANGUAGES } from '../../src/rest/reference/examples.js';
// @ts-expect-error -- a script of the page, without types
import { example } from '../../src/rest/reference/schema.js';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const STAND_IN = '__TOKEN__';
let app: TestApp;

beforeAll(async () => {
  app = await startApp();
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
});

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly object[];
  readonly security: readonly object[];
  readonly requestBody?: { readonly content?: Record<string, { readonly schema?: object }> };
  readonly responses: Record<string, { readonly content?: object }>;
}

/** How a program ended, with all that it wrote. */
function run(command: string, args: readonly string[], token: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { PATH: process.env.PATH, TOKEN: token }, timeout: 60_000 };
    execFile(command, [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command}: ${error.message} ${stderr}`));
    });
  });
}

async function hasPython(): Promise<boolean> {
  return run('python3', ['--version'], '').then(
    () => true,
    () => false,
  );
}

test('every example runs as it stands, and gets the same answer in each language', async () => {
  await using folder = await temporaryFolder();
  const api = (await app.rest('GET', '/openapi.json')).json;
  const withPython = await hasPython();
  const all = Object.entries(api.paths as Record<string, Record<string, Operation>>).flatMap(
    ([path, item]) => Object.entries(item).map(([verb, operation]) => ({ verb, path, operation })),
  );
  let ran = 0;
  for (const each of all) {
    const { path, operation } = each;
    // Streams do not end.
    const types = Object.keys(operation.responses['200']?.content ?? {});
    if (types.includes('application/x-ndjson')) continue;
    const schema = operation.requestBody?.content?.['application/json']?.schema;
    const body =
      operation.requestBody === undefined
        ? undefined
        : schema === undefined
          ? ''
          : JSON.stringify(example(api, schema), undefined, 2);
    const request = requestOf(each, new Map(), body, STAND_IN) as object;
    const token = /^\/(accounts|installation)\b/.test(path) ? ADMIN : NORMAL;
    const make = (language: string): string =>
      (LANGUAGES as Record<string, (...args: unknown[]) => string>)[language]?.(
        request,
        app.url,
        STAND_IN,
      ) ?? '';
    for (const language of Object.keys(LANGUAGES as object)) {
      expect(make(language)).not.toMatch(/__TOKEN__|\/\/push/);
    }
    const file = join(folder.path, 'example.mjs');
    await writeFile(file, make('Node'));
    const [curl, node, python] = await Promise.all([
      run('sh', ['-c', `${make('curl')} -s -o /dev/null -w '%{http_code}'`], token),
      run(process.execPath, [file], token),
      withPython ? run('python3', ['-c', make('Python')], token) : undefined,
    ]);
    const statuses = [curl.slice(-3), node.slice(0, 3), python?.slice(0, 3) ?? curl.slice(-3)];
    const what = `${operation.operationId}: ${make('curl')}`;
    // Creations conflict with the one before; everything else is answered alike.
    const isMade = statuses.every((status) => ['200', '409'].includes(status));
    if (!isMade) expect(statuses, what).toEqual([statuses[0], statuses[0], statuses[0]]);
    expect(Number(statuses[0]), what).toBeLessThan(500);
    expect(statuses[0], what).not.toBe('401');
    ran += 1;
  }
  expect(ran).toBeGreaterThan(50);
});
