#!/usr/bin/env node
// Runs the command line with the Node that comes with the package, where the one on PATH is older.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as module from 'node:module';
import { fileURLToPath } from 'node:url';

const main = new URL('../src/cli/main.ts', import.meta.url);
const own = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url));

if (Number(process.versions.node.split('.')[0]) >= 24 || !existsSync(own)) {
  await import('./check-node.js');
  // Halves the time to start.
  module.enableCompileCache?.();
  await import(main.href);
} else {
  const args = [fileURLToPath(main), ...process.argv.slice(2)];
  // The name is that of src/when-orphaned.ts.
  const env = { ...process.env, QUEUED_CRAWLER_STOPS_WITH_PARENT: '1' };
  const child = spawn(own, args, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1);
  });
}
