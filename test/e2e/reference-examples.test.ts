import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
// @ts-expect-error -- a script of the page, without types
import { requestOf } from '../../src/rest/reference/call.js';
// @ts-expect-error -- a script of the page, without types
import { LANGUAGES } from '../../src/rest/reference/examples.js';
// @ts-expect-error -- a script of the page, without types
import { example } from '../../src/rest/reference/schema.js';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const STAND_IN = '__TOKEN__';
/** Ends the answer of each example. */
const END = '-- end of the answer --';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly object[];
  readonly security: readonly object[];
  readonly requestBody?: { readonly content?: Record<string, { readonly schema?: object }> };
  readonly responses: Record<string, { readonly content?: object }>;
}

interface Example {
  readonly name: string;
  /** The token that `TOKEN` has for it. */
  readonly token: string;
  readonly programs: Readonly<Record<string, string>>;
}

/** The operations of the API as the page shows them, with an example in each language. */
function examplesOf(api: { paths: Record<string, Record<string, Operation>> }, url: string) {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]): Example[] => {
      // Streams do not end.
      const types = Object.keys(operation.responses['200']?.content ?? {});
      if (types.includes('application/x-ndjson')) return [];
      const schema = operation.requestBody?.content?.['application/json']?.schema;
      const body =
        operation.requestBody === undefined
          ? undefined
          : schema === undefined
            ? ''
            : JSON.stringify(example(api, schema), undefined, 2);
      const request = requestOf({ verb, path, operation }, new Map(), body, STAND_IN) as object;
      const languages = Object.entries(LANGUAGES as Record<string, (...args: unknown[]) => string>);
      const programs = languages.map(([name, make]) => [name, make(request, url, STAND_IN)]);
      const token = /^\/(accounts|installation)\b/.test(path) ? ADMIN : NORMAL;
      return [{ name: operation.operationId, token, programs: Object.fromEntries(programs) }];
    }),
  );
}

/** For each language, a program that runs the files named by its arguments, each with its token: `token file`. */
const RUNNERS: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  curl: [
    'sh',
    '-c',
    `while [ $# -gt 0 ]; do export TOKEN="$1"; . "$2"; printf '\n%s\n' '${END}'; shift 2; done`,
    'sh',
  ],
  Node: [
    process.execPath,
    '--input-type=module',
    '-e',
    `for (let [token, file, ...rest] = process.argv.slice(1); file; [token, file, ...rest] = rest) {
      process.env.TOKEN = token;
      await import(file);
      console.log('${END}');
    }`,
  ],
  Python: [
    'python3',
    '-c',
    `import os, sys
for token, file in zip(sys.argv[1::2], sys.argv[2::2]):
    os.environ["TOKEN"] = token
    exec(open(file).read(), {})
    print("${END}")`,
  ],
};

/** The status that each example of a language gets from a new service. */
async function statusesIn(language: string, folder: string): Promise<Record<string, number>> {
  await using app = await startApp();
  const examples = examplesOf((await app.rest('GET', '/openapi.json')).json, app.url);
  const args: string[] = [];
  for (const { name, token, programs } of examples) {
    const program = programs[language] ?? '';
    expect(program).not.toMatch(/__TOKEN__|\/\/push/);
    const file = join(folder, `${language}-${name}.mjs`);
    await writeFile(file, language === 'curl' ? `${program} -s -w '%{http_code}'` : program);
    args.push(token, file);
  }
  const [command = '', ...before] = RUNNERS[language] ?? [];
  const answers = (await run(command, [...before, ...args])).split(END);
  expect(answers.pop()?.trim()).toBe('');
  expect(answers.length).toBe(examples.length);
  const status = (answer: string): number =>
    Number(language === 'curl' ? answer.trim().slice(-3) : answer.trim().slice(0, 3));
  return Object.fromEntries(
    examples.map(({ name }, at) => [name, status(answers[at] ?? '')] as const),
  );
}

/** What a program prints; rejects when it fails. */
function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: { PATH: process.env.PATH }, timeout: 180_000 };
    execFile(command, [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command}: ${error.message} ${stderr}`));
    });
  });
}

const hasPython = spawnSync('python3', ['--version']).status === 0;

test('every example runs as it stands, and gets the same answer in each language', async () => {
  await using folder = await temporaryFolder();
  const curl = await statusesIn('curl', folder.path);
  expect(Object.keys(curl).length).toBeGreaterThan(50);
  for (const [name, status] of Object.entries(curl)) {
    expect(status, name).toBeGreaterThanOrEqual(200);
    expect(status, name).toBeLessThan(500);
    expect(status, name).not.toBe(401);
  }
  expect(await statusesIn('Node', folder.path)).toEqual(curl);
  if (hasPython) expect(await statusesIn('Python', folder.path)).toEqual(curl);
});
