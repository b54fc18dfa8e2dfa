import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { freePort } from './listen.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** Whether Prometheus and its tool are there (Debian: `apt-get install prometheus`). */
export const hasPrometheus =
  spawnSync('prometheus', ['--version']).status === 0 &&
  spawnSync('promtool', ['--version']).status === 0;

/** A running Prometheus that scrapes one target twice a second. */
export interface Prometheus extends AsyncDisposable {
  /** The samples of a query. Throws what is wrong with it. */
  query(expr: string): Promise<readonly { readonly value: readonly [number, string] }[]>;
  /** The names of the rules that were loaded without an error. */
  rules(): Promise<string[]>;
}

/** Starts Prometheus with the rules of a file. */
export async function startPrometheus(options: {
  readonly target: string;
  readonly token: string;
  readonly rules: string;
}): Promise<Prometheus> {
  const folder = await temporaryFolder();
  const config = join(folder.path, 'prometheus.yml');
  const scrape = {
    job_name: 'queued-crawler',
    scrape_interval: '500ms',
    scrape_timeout: '500ms',
    authorization: { credentials: options.token },
    static_configs: [{ targets: [options.target] }],
  };
  // YAML contains JSON.
  await writeFile(
    config,
    JSON.stringify({ rule_files: [options.rules], scrape_configs: [scrape] }),
  );
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'close');
  await eventually(async () => {
    const ready = await fetch(`${url}/-/ready`);
    await ready.text();
    if (!ready.ok) throw new Error('Prometheus is not ready');
  });
  const get = async (path: string) => {
    const reply = (await (await fetch(`${url}/api/v1/${path}`)).json()) as {
      status: string;
      error?: string;
      // oxlint-disable-next-line typescript/no-explicit-any -- each path has a shape of its own
      data: any;
    };
    if (reply.status !== 'success') throw new Error(reply.error);
    return reply.data;
  };
  return {
    query: async (expr) => (await get(`query?query=${encodeURIComponent(expr)}`)).result,
    async rules() {
      const groups = (await get('rules')).groups as {
        rules: { name: string; health: string }[];
      }[];
      return groups.flatMap((group) => group.rules.map(({ name }) => name));
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
      await folder[Symbol.asyncDispose]();
    },
  };
}
