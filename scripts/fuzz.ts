import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { startApp } from '../src/app/app.ts';
import { readConfig } from '../src/config/config.ts';
import { FUZZED, runFuzz } from '../test/support/fuzz.ts';

// Sends mutated calls over every protocol to a service of its own: FUZZ_CALLS (400,000) calls,
// generated from FUZZ_SEED.

const calls = Number(process.env.FUZZ_CALLS ?? 400_000);
const seed = Number(process.env.FUZZ_SEED ?? (Date.now() % 2 ** 31) + 1);

const dataDir = await mkdtemp(join(tmpdir(), 'queued-crawler-fuzz-'));
const errors: string[] = [];
const logger = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) });
const config = readConfig({ ...FUZZED, PORT: '0', DATA_DIR: dataDir });
const app = await startApp({ config, logger });
process.stdout.write(`${calls} calls, FUZZ_SEED=${seed}\n`);
const { answers, faults } = await runFuzz(app.url, calls, seed);
await app.close();
await rm(dataDir, { recursive: true });
for (const answer of [...answers.keys()].sort()) {
  process.stdout.write(`${answer}: ${answers.get(answer)}\n`);
}
for (const { call, answer } of faults.slice(0, 20)) {
  const shown = { ...call, body: call.body.toString('base64') };
  process.stdout.write(`FAULT ${answer}: ${JSON.stringify(shown)}\n`);
}
for (const line of errors.slice(0, 10)) process.stdout.write(line);
if (faults.length > 0 || errors.length > 0) process.exitCode = 1;
