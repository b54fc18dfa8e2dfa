import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const MODULES = {
  react: ['react', 'react.production.js'],
  scheduler: ['scheduler', 'scheduler.production.js'],
  'react-dom': ['react-dom', 'react-dom.production.js'],
  'react-dom/client': ['react-dom', 'react-dom-client.production.js'],
} as const;

/**
 * React and its renderer as one script for browsers, as bundlers make them: it defines the globals
 * `React` and `ReactDOM`.
 */
export function reactBundle(): string {
  const modules = Object.entries(MODULES).map(([name, [module, file]]) => {
    const source = readFileSync(npmFile(module, `cjs/${file}`), 'utf8');
    return `${JSON.stringify(name)}(exports, require, module) {${source}\n}`;
  });
  return `(() => {
    const modules = {${modules.join(',\n')}};
    const loaded = {};
    const require = (name) => {
      if (!(name in loaded)) {
        const module = (loaded[name] = { exports: {} });
        modules[name](module.exports, require, module);
      }
      return loaded[name].exports;
    };
    globalThis.process = { env: { NODE_ENV: 'production' } };
    globalThis.React = require('react');
    globalThis.ReactDOM = require('react-dom/client');
  })();`;
}

/** The path of a file of an npm package. */
export function npmFile(module: string, path: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(module) ?? [];
  for (const folder of folders) {
    const found = join(folder, module, path);
    try {
      readFileSync(found);
      return found;
    } catch {
      // Another folder may have it.
    }
  }
  throw new Error(`${module} has no ${path}; from ${dirname(import.meta.url)}`);
}
