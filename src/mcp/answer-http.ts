import { createMcpHandler } from '@modelcontextprotocol/server';
import { createMcpServer, type McpServerOptions } from './mcp-server.ts';

/**
 * Answers one request of Streamable HTTP. Nothing is kept between requests, so that any process can
 * answer the next one.
 */
export async function answerHttp(request: Request, options: McpServerOptions): Promise<Response> {
  // The tools never change, so there is nothing to subscribe to.
  const handler = createMcpHandler(() => createMcpServer(options), { maxSubscriptions: 0 });
  return handler.fetch(request);
}
