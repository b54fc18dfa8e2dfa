import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { createMcpServer, type McpServerOptions } from './mcp-server.ts';

/** Serves an agent over two streams, until it closes its end or `signal` is aborted. */
export async function serveOverStdio(
  stdin: Readable,
  stdout: Writable,
  { signal, ...options }: McpServerOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const ended = Promise.race([
    once(stdin, 'end', { signal }),
    once(stdin, 'close', { signal }),
  ]).catch(() => undefined);
  const handle = serveStdio(() => createMcpServer(options), {
    transport: new StdioServerTransport(stdin, stdout),
  });
  await ended;
  await handle.close();
}
