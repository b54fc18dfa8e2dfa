import { createRequire, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

// `node --import` of this file gives a generator the TypeScript that oazapfts brings: TypeScript 7
// has no JavaScript API, which @hey-api/openapi-ts writes its output by.

const { resolve } = createRequire(import.meta.resolve('oazapfts'));
const url = pathToFileURL(resolve('typescript')).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript'
      ? { url, format: 'commonjs', shortCircuit: true }
      : next(specifier, context),
});
