import { execFile } from 'node:child_process';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { listen } from '../../support/listen.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

const CLIENT = join(import.meta.dirname, '..', '..', 'support', 'early-answer-client.ts');

function writeWithoutEnd(stream: ServerHttp2Stream): void {
  while (!stream.destroyed && stream.write(Buffer.alloc(65_536)));
  if (!stream.destroyed) stream.once('drain', () => writeWithoutEnd(stream));
}

// In a process of its own: Node would hold up this one for ever.
// Longer bodies are sent in pieces.
test.each([20_000, 300_000])(
  'answers without an end that come before bodies of %i bytes are sent do not hold up the client',
  async (bytes) => {
    const server = createSecureServer({ ...TLS_FIXTURE });
    server.on('sessionError', () => undefined);
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      stream.respond({ ':status': 200 });
      writeWithoutEnd(stream);
    });
    await using open = await listen(server);
    const args = [CLIENT, `https://127.0.0.1:${open.port}/`, String(bytes)];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      timeout: 15_000,
      killSignal: 'SIGKILL',
    });
    // The connection ends with the first stream that is aborted.
    expect(Number(stdout)).toBeGreaterThan(0);
  },
);
