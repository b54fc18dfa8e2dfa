import type { CallToolResult } from '@modelcontextprotocol/server';
import { describeFailure } from '../client/client.ts';

/** Annotations of tools that change nothing. */
export const READS = { readOnlyHint: true, openWorldHint: false } as const;

/** Longest text of facts in one reply. Lists are bounded by their tools; single values are not. */
const MAX_FACTS_CHARACTERS = 60_000;

/** Facts as JSON, and further texts. */
export function reply(facts: object, ...texts: readonly string[]): CallToolResult {
  const json = JSON.stringify(facts, undefined, 1);
  const cut =
    json.length > MAX_FACTS_CHARACTERS
      ? `${json.slice(0, MAX_FACTS_CHARACTERS)}\n(cut: ask for less)`
      : json;
  return { content: [cut, ...texts].map((text) => ({ type: 'text', text })) };
}

/** An error that the agent reads. */
export function errorReply(message: string): CallToolResult {
  return { content: [{ type: 'text', text: message }], isError: true };
}

/** Runs a tool; a call that the service refused becomes an error that says why and what to do. */
export async function answering(work: () => Promise<CallToolResult>): Promise<CallToolResult> {
  try {
    return await work();
  } catch (error) {
    const { message, reason, code, field, retryAfterMs } = describeFailure(error);
    const parts = [
      message,
      `(${reason ?? code})`,
      ...(field === undefined ? [] : [`Field: ${field}.`]),
      ...(retryAfterMs === undefined ? [] : [`Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`]),
    ];
    return errorReply(parts.join(' '));
  }
}
