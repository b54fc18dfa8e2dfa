#!/usr/bin/env node
import * as module from 'node:module';
import './check-node.js';

// Node 22 warns of SQLite.
const { emitWarning } = process;
process.emitWarning = (warning, ...rest) => {
  if (rest[0] !== 'ExperimentalWarning') emitWarning.call(process, warning, ...rest);
};

// Halves the time to start.
module.enableCompileCache();
await import('../src/cli/main.js');
